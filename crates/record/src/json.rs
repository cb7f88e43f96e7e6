//! A JSON value as its text: a fraction of what it takes in parts, for values that are kept long and looked at seldom.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value, as its text without white space between its parts.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The JSON of a value whose members are all JSON.
    pub fn new(value: &impl Serialize) -> Self {
        Self(serde_json::value::to_raw_value(value).expect("all of its members are JSON"))
    }

    /// The value, which is raw.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The same value without white space between its parts, in the form that every reader takes
    /// ([`acpd_wire::readable`]); `None` for what cannot be read so.
    pub fn compact(raw: &RawValue) -> Option<Self> {
        acpd_wire::read(raw.get().as_bytes()).ok()
    }

    /// Whether it is the same value, however it is written.
    pub fn says_the_same_as(&self, raw: &RawValue) -> bool {
        Self::compact(raw).is_some_and(|other| self.value() == other.value())
    }

    pub(crate) fn value(&self) -> Value {
        acpd_wire::value(self.get().as_bytes())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(&Value::deserialize(deserializer)?))
    }
}

/// For a member that is absent or null or has a value: a null counts as a value.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// For a member of a checkpoint: the text in a string. A value that is read again could be written otherwise, in the last
/// digit of a number; and a null could be taken for nothing.
pub(crate) mod exact {
    use super::Json;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::value::RawValue;

    pub(crate) fn serialize<S: Serializer>(json: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
        json.as_ref().map(Json::get).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| RawValue::from_string(text).map(Json).map_err(Error::custom)).transpose()
    }
}

/// For a member that counts as absent when it has another shape: one odd member must not make all else unreadable.
///
/// # Errors
/// Those of the deserializer.
pub fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// The same for a member of many parts, which is read from its text: as values in between they cost more than all else.
///
/// # Errors
/// Those of the deserializer.
pub(crate) fn lenient_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let text = Box::<RawValue>::deserialize(deserializer)?;
    Ok(acpd_wire::read(text.get().as_bytes()).unwrap_or_default())
}

/// For a member that was stored as a [`Json`]: its text, as it is.
///
/// # Errors
/// Those of the deserializer.
pub(crate) fn stored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Ok(Option::<Box<RawValue>>::deserialize(deserializer)?.map(Json))
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Json {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!(true)
    }
}

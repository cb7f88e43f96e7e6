//! Names of the members of a type, as it is read: one list of them for the reader and for who refuses what is not in it.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Names of the members of a type.
pub type Members = &'static [&'static str];

/// Returns the names of the members of a struct as it is read, and none for any other type.
pub fn member_names<T: Deserialize<'static>>() -> Members {
    let mut names: Members = &[];
    // It fails always: a deserializer is told the names before it is asked for a value.
    let _no_value = T::deserialize(Names(&mut names));
    names
}

/// A deserializer that has no value and keeps the names of the members that are asked for.
struct Names<'a>(&'a mut Members);

impl Deserializer<'static> for Names<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'static>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    fn deserialize_struct<V: Visitor<'static>>(
        self,
        _name: &'static str,
        fields: Members,
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'static>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 28, RA8: one list of names, as the query is read
    #[test]
    fn the_names_are_those_that_are_read() {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "only its names are read")]
        struct Some {
            q: Option<String>,
            #[serde(rename = "of")]
            other: String,
            two_words: u64,
        }
        assert_eq!(member_names::<Some>(), ["q", "of", "twoWords"]);
        assert!(member_names::<String>().is_empty() && member_names::<()>().is_empty());
    }
}

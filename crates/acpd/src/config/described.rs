//! What values of the file look like, for its schema and its reference: tests only. Not here: what they mean, which the
//! comments of the sections say.

use super::amounts::Wait;
use super::hooks::HookUrl;
use super::sections::{TokenHash, Variables};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A form of values: how it is called, and its schema.
macro_rules! form {
    ($name:ident, $title:literal, $($schema:tt)+) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($($schema)+);
                schema.insert("title".to_owned(), $title.into());
                schema
            }
        }
    };
}

pub(super) struct Span;
pub(super) struct SpanOrNever;
pub(super) struct Bytes;
pub(super) struct BytesOrNever;
pub(super) struct ListenAddress;
pub(super) struct Place;
pub(super) struct Moment;

form!(Span, "duration", { "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" });
form!(SpanOrNever, "duration or `\"never\"`", { "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d)|never)$" });
form!(Wait, "duration or `\"never\"`", { "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d)|never)$" });
form!(Bytes, "byte count", { "type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]+( *[KMG]iB)?$" });
form!(BytesOrNever, "byte count or `\"never\"`",
    { "type": ["integer", "string"], "minimum": 1, "pattern": "^([0-9]+( *[KMG]iB)?|never)$" });
form!(ListenAddress, "address", { "type": "string", "pattern": "^(localhost|[0-9.]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}$" });
form!(Place, "path", { "type": "string", "minLength": 1 });
form!(Moment, "date, or date and time", { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].+)?$" });
form!(HookUrl, "URL", { "type": "string", "pattern": "^https?://" });
form!(TokenHash, "hash", { "type": "string", "pattern": "^sha256:[0-9A-Fa-f]{64}$" });
form!(Variables, "table of strings", { "type": "object", "additionalProperties": { "type": "string" } });

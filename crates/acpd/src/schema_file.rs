//! The files of `docs/schema` and `docs/reference` that are made of this crate, for tests: each is what the code says.

use acpd_record::schema::{definitions, generator};
use schemars::JsonSchema;
use serde_json::{Value, json};
use std::path::Path;

/// Set by `cargo xtask openapi`: the file is to be written, not compared.
const RENEW: &str = "ACPD_RENEW_OPENAPI";

/// Compares a file with what it is made of, or writes it.
pub(crate) fn check<T: JsonSchema>(name: &str, description: &str) {
    let mut generator = generator("/$defs");
    let root = generator.subschema_for::<T>();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": T::schema_name(),
        "description": description,
        "$ref": root.get("$ref"),
        "$defs": definitions(&mut generator),
    });
    compare(&format!("schema/{name}"), &json_text(&schema));
}

/// A schema as it stands in its file.
pub(crate) fn json_text(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).expect("it is JSON") + "\n"
}

/// Compares a file below `docs` with what the code says, or writes it.
pub(crate) fn compare(name: &str, text: &str) {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(name);
    if std::env::var_os(RENEW).is_some() {
        return std::fs::write(file, text).expect("the file can be written");
    }
    let is = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(is == text, "docs/{name} is stale; renew it: cargo xtask openapi");
}

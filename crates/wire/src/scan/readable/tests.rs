//! What is read although serde_json refuses it, and that everything else is left alone.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn text(value: &Value) -> String {
    value.to_string()
}

/// Values as deep as a few levels.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
        r#"[a-z0-9"\\\[\]{}:,é\n-]{0,12}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(r#"[a-z"\\\[-]{0,4}"#, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

// FR-8: what other readers refuse is read, and the rest of the line with it
#[test]
fn numbers_and_levels_without_bounds_are_read() {
    for number in ["1e400", "-1E+400", "1.5e999999999999999999", &"9".repeat(400)] {
        let line = format!(r#"{{"a":{number}, "b" :[1, {number}],"{number}":1e-400,"c":"\"{number}"}}"#);
        assert!(serde_json::from_str::<Value>(&line).is_err(), "{number}");
        let expected = json!({"a": number, "b": [1, number], number: 0.0, "c": format!("\"{number}")});
        assert_eq!(value(line.as_bytes()), expected);
    }
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [1, 99, 100, 101, 127, 128, 300, 200_000] {
            let deep = format!("{}7{}", open.repeat(depth), close.repeat(depth));
            let line = format!(r#" {{"x":{deep},"text":"kept"}} "#);
            let read: Value = read(line.as_bytes()).expect("every reader takes it");
            assert_eq!((&read["text"], read["x"].is_null()), (&json!("kept"), false), "{depth}");
            // The object around it is a level, too.
            let is_borrowed = matches!(readable(line.as_bytes()), Cow::Borrowed(_));
            assert_eq!(is_borrowed, depth < LEVELS, "{depth}");
        }
    }
    assert_eq!(value(br#"{"a":"\ud83d","b":1e400}"#), json!({"a": "\u{fffd}", "b": "1e400"}));
}

// FR-8: what is no JSON stays what it is, and says so
#[test]
fn what_is_no_json_is_refused_as_before() {
    for line in ["", " ", "{", "[1e400", "1e400 1", "{\"a\":1e400,}", "[01e400]", "nul", "\u{feff}1e400"] {
        assert!(
            matches!(readable(line.as_bytes()), Cow::Borrowed(same) if same == line.as_bytes()),
            "{line}"
        );
        assert!(read::<Value>(line.as_bytes()).is_err() && value(line.as_bytes()).is_null(), "{line}");
    }
    assert!(read::<Vec<u64>>(b"[1e400]").is_err(), "a text is no number");
    assert!(value(b"[\"\xff\",1e400]").is_null());
}

proptest! {
    // FR-8: what other readers take is left as it is
    #[test]
    fn what_is_readable_is_borrowed(value in values()) {
        for text in [text(&value), serde_json::to_string_pretty(&value).expect("JSON")] {
            prop_assert!(matches!(readable(text.as_bytes()), Cow::Borrowed(same) if same == text.as_bytes()));
        }
    }

    // FR-8: what cannot be read takes nothing else with it
    #[test]
    fn the_rest_is_the_same(before in values(), after in values(), depth in 101_usize..400, space in "[ \n\t]{0,3}") {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let line = format!(r#"{{"a":{before},"deep":{space}{deep},"huge":[-1.5e400{space}],"b":{{"c":{after}}}}}"#);
        prop_assert!(serde_json::from_str::<Value>(&line).is_err());
        let read: Value = read(line.as_bytes()).expect("every reader takes it");
        let alone = |value: &Value| serde_json::from_str::<Value>(&text(value)).expect("JSON");
        prop_assert_eq!(&read["a"], &alone(&before));
        prop_assert_eq!(&read["b"]["c"], &alone(&after));
        prop_assert_eq!(&read["huge"], &json!(["-1.5e400"]));
        let mut inside = &read["deep"];
        for _ in 1..LEVELS {
            inside = &inside[0];
        }
        prop_assert!(inside.is_null() && read["deep"].is_array());
    }
}

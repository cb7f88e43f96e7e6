//! One JSON object for each line of a log: what tracing-subscriber writes of an event, with the fields of the spans that
//! the event is in beside its own, so that `.session` finds a line whatever wrote it.
//!
//! Not here: which names fields have, and that no two of a line are the same, which those who make spans and lines see to.

use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, JsonFields, Writer, format};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes flat objects.
pub(crate) struct FlatJson(Format<Json>);

impl FlatJson {
    pub(crate) fn new() -> Self {
        // Its own way to show spans puts objects into the object.
        Self(format().json().flatten_event(true).with_current_span(false).with_span_list(false))
    }
}

impl<S> FormatEvent<S, JsonFields> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut object = String::new();
        self.0.format_event(context, Writer::new(&mut object), event)?;
        writer.write_str(object.trim_end().strip_suffix('}').ok_or(fmt::Error)?)?;
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>().map_or("", |fields| fields);
            match members(fields) {
                "" => {}
                fields => write!(writer, ",{fields}")?,
            }
        }
        writer.write_str("}\n")
    }
}

/// What is between the braces of an object.
fn members(object: &str) -> &str {
    object.strip_prefix('{').and_then(|object| object.strip_suffix('}')).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex, PoisonError};
    use tracing::field::Empty;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(act: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::Layer::default()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(FlatJson::new());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), act);
        let bytes = std::mem::take(&mut *lines.0.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8(bytes).expect("text");
        let whole = |line: &str| {
            let mut line: Value = serde_json::from_str(line).expect("JSON");
            line.as_object_mut().and_then(|line| line.remove("timestamp")).expect("each has a time");
            line
        };
        text.lines().map(whole).collect()
    }

    // contract 6: fields of spans stand beside those of the line, also when they are known late; a line without a span, or
    // in one of which nothing is known, is as it was
    #[test]
    fn the_fields_of_spans_stand_in_the_object() {
        let lines = logged(|| {
            let connection = tracing::error_span!("connection", connection = 7);
            let session = connection.in_scope(|| tracing::error_span!("session", session = "a \"b\""));
            session.in_scope(|| tracing::info!(client = "editor", "inside {}", "two"));
            session.in_scope(|| tracing::info!(parent: None, "beside"));
            let run = tracing::error_span!(parent: None, "run", session = Empty, run = Empty);
            run.in_scope(|| tracing::info!("nameless"));
            run.record("session", "c");
            run.record("run", 2);
            connection.in_scope(|| run.in_scope(|| tracing::warn!("named")));
        });
        let target = module_path!();
        assert_eq!(
            lines,
            [
                json!({"level": "INFO", "message": "inside two", "client": "editor", "target": target,
                    "session": "a \"b\"", "connection": 7}),
                json!({"level": "INFO", "message": "beside", "target": target}),
                json!({"level": "INFO", "message": "nameless", "target": target}),
                json!({"level": "WARN", "message": "named", "target": target, "session": "c", "run": 2}),
            ]
        );
    }
}

//! `terminal/*`: what an agent writes, in the words of terminals, and back (contract 2.3).

use super::{Served, ServiceError, Services};
use crate::acp::META;
use acpd_supervisor::WindowSize;
use acpd_terminal::{TerminalEvent, TerminalHandle, TerminalId, TerminalReport, TerminalSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::sync::mpsc;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    command: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<Variable>>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    output_byte_limit: Option<u64>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    terminal_id: String,
    #[serde(default)]
    output_byte_limit: Option<u64>,
    #[serde(default)]
    cols: Option<u16>,
    #[serde(default)]
    rows: Option<u16>,
}

impl Services {
    /// The terminal's output goes to `feed`.
    pub(super) async fn create(
        &self,
        params: &[u8],
        feed: mpsc::Sender<TerminalEvent>,
    ) -> Result<Served, ServiceError> {
        let create: Create = parse(params)?;
        let cwd = create.cwd.unwrap_or_else(|| self.cwd.clone());
        if !cwd.is_absolute() {
            return Err(ServiceError::invalid("cwd", "a full path is required, or none at all"));
        }
        let mut spec = TerminalSpec::new(create.command, cwd);
        spec.args = create.args.unwrap_or_default().into_iter().map(Into::into).collect();
        let variables = create.env.unwrap_or_default().into_iter();
        spec.env = variables.map(|variable| (variable.name.into(), variable.value.into())).collect();
        spec.label = Some(self.agent.clone());
        spec.output_byte_limit = create.output_byte_limit;
        spec.pty = window(&create.meta[META]["pty"])?;
        let id = self.terminals.create(&self.owner, spec, Some(feed)).await?;
        let served = Served::plain(&json!({"terminalId": id.as_str()}));
        Ok(Served { created: Some(id), ..served })
    }

    pub(super) async fn output(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, named) = self.named(params)?;
        let snapshot = terminal.output(named.output_byte_limit).await?;
        let mut result = json!({"output": snapshot.output.text, "truncated": snapshot.output.truncated});
        if let Some(report) = &snapshot.report {
            result["exitStatus"] = exit_status(report);
            // Older agents look for it here.
            result["exitCode"] = json!(report.exit_code());
        }
        Ok(Served { summary: Value::Null, ..Served::plain(&result) })
    }

    pub(super) async fn wait(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, _) = self.named(params)?;
        let report = terminal.wait_for_exit().await;
        let mut result = exit_status(&report);
        // Older agents look for it here.
        result["exitStatus"] = exit_status(&report);
        Ok(Served::plain(&result))
    }

    pub(super) async fn kill(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, _) = self.named(params)?;
        terminal.kill().await;
        Ok(Served::plain(&json!({})))
    }

    pub(super) async fn release(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let named: Named = parse(params)?;
        self.terminals.release(&self.owner, &TerminalId::from(named.terminal_id.as_str())).await?;
        Ok(Served::plain(&json!({})))
    }

    pub(super) async fn resize(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, named) = self.named(params)?;
        let size = match (named.cols, named.rows) {
            (Some(cols), Some(rows)) => window(&json!({"cols": cols, "rows": rows}))?,
            _ => None,
        };
        let size =
            size.ok_or_else(|| ServiceError::invalid("cols, rows", "both are required, 1 to 65535"))?;
        terminal.resize(size).await?;
        Ok(Served::plain(&json!({})))
    }

    fn named(&self, params: &[u8]) -> Result<(TerminalHandle, Named), ServiceError> {
        let named: Named = parse(params)?;
        let id = TerminalId::from(named.terminal_id.as_str());
        Ok((self.terminals.get(&self.owner, &id)?, named))
    }
}

/// The size of a window; None when none is asked for.
fn window(size: &Value) -> Result<Option<WindowSize>, ServiceError> {
    if size.is_null() {
        return Ok(None);
    }
    let cells = |name: &str| {
        size[name].as_u64().and_then(|cells| u16::try_from(cells).ok()).filter(|cells| *cells > 0)
    };
    match (cells("cols"), cells("rows")) {
        (Some(cols), Some(rows)) => Ok(Some(WindowSize { cols, rows })),
        _ => Err(ServiceError::invalid("pty", "cols and rows are required, 1 to 65535")),
    }
}

/// ACP's `exitStatus`: the code or the signal, as the operating system says it.
pub(crate) fn exit_status(report: &TerminalReport) -> Value {
    json!({"exitCode": report.exit_code(), "signal": report.signal()})
}

fn parse<'a, T: Deserialize<'a>>(params: &'a [u8]) -> Result<T, ServiceError> {
    serde_json::from_slice(params)
        .map_err(|error| ServiceError::new(acpd_wire::codes::INVALID_PARAMS, format!("params: {error}")))
}

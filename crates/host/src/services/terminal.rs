//! `terminal/*`: what an agent writes, in the words of terminals, and back (contract 2.3).

use super::{Nothing, Served, ServiceError, Services};
use acpd_record::ExitStatus;
use acpd_supervisor::WindowSize;
use acpd_terminal::{Keeping, TerminalEvent, TerminalHandle, TerminalId, TerminalReport, TerminalSpec};
use serde::{Deserialize, Serialize};
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
    meta: Option<CreateMeta>,
}

#[derive(Default, Deserialize)]
struct CreateMeta {
    #[serde(default, rename = "sandboxagent.dev")]
    own: Option<OwnMeta>,
}

#[derive(Default, Deserialize)]
struct OwnMeta {
    #[serde(default)]
    pty: Option<Window>,
}

/// The size of a window, in cells.
#[derive(Default, Deserialize)]
struct Window {
    #[serde(default)]
    cols: i64,
    #[serde(default)]
    rows: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created<'a> {
    pub(super) terminal_id: &'a str,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    output: &'a str,
    truncated: bool,
    exit_status: Option<ExitStatus>,
    /// Older agents look for it here.
    exit_code: Option<Option<i32>>,
}

/// How a command ended, as ACP has it and where older agents look for it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Waited {
    exit_code: Option<i32>,
    signal: Option<String>,
    exit_status: ExitStatus,
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
    cols: Option<i64>,
    #[serde(default)]
    rows: Option<i64>,
}

impl Services {
    /// The terminal's output goes to `feed`.
    pub(super) async fn create(
        &self,
        params: &[u8],
        feed: mpsc::Sender<TerminalEvent>,
        keeping: Option<Keeping>,
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
        let window = create.meta.and_then(|meta| meta.own).and_then(|own| own.pty);
        spec.pty = window.map(size).transpose()?;
        let id = self.terminals.create_kept(&self.owner, spec, Some(feed), keeping).await?;
        Ok(Served::created(&id))
    }

    pub(super) async fn output(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, named) = self.named(params)?;
        let snapshot = terminal.output(named.output_byte_limit).await?;
        let report = snapshot.report.as_ref();
        Ok(Served::plain(&Output {
            output: &snapshot.output.text,
            truncated: snapshot.output.truncated,
            exit_status: report.map(exit_status),
            exit_code: report.map(|report| report.exit_code()),
        }))
    }

    pub(super) async fn wait(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, _) = self.named(params)?;
        let exit_status = exit_status(&terminal.wait_for_exit().await);
        let ExitStatus { exit_code, signal } = exit_status.clone();
        Ok(Served::plain(&Waited { exit_code, signal, exit_status }))
    }

    pub(super) async fn kill(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, _) = self.named(params)?;
        terminal.kill().await;
        Ok(Served::plain(&Nothing {}))
    }

    pub(super) async fn release(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let named: Named = parse(params)?;
        self.terminals.release(&self.owner, &TerminalId::from(named.terminal_id.as_str())).await?;
        Ok(Served::plain(&Nothing {}))
    }

    pub(super) async fn resize(&self, params: &[u8]) -> Result<Served, ServiceError> {
        let (terminal, named) = self.named(params)?;
        let (Some(cols), Some(rows)) = (named.cols, named.rows) else {
            return Err(ServiceError::invalid("cols, rows", "both are required, 1 to 65535"));
        };
        let size = size(Window { cols, rows })?;
        terminal.resize(size).await?;
        Ok(Served::plain(&Nothing {}))
    }

    fn named(&self, params: &[u8]) -> Result<(TerminalHandle, Named), ServiceError> {
        let named: Named = parse(params)?;
        let id = TerminalId::from(named.terminal_id.as_str());
        Ok((self.terminals.get(&self.owner, &id)?, named))
    }
}

fn size(window: Window) -> Result<WindowSize, ServiceError> {
    let cells = |cells: i64| u16::try_from(cells).ok().filter(|cells| *cells > 0);
    match (cells(window.cols), cells(window.rows)) {
        (Some(cols), Some(rows)) => Ok(WindowSize { cols, rows }),
        _ => Err(ServiceError::invalid("pty", "cols and rows are required, 1 to 65535")),
    }
}

/// ACP's `exitStatus`: the code or the signal, as the operating system says it.
pub(crate) fn exit_status(report: &TerminalReport) -> ExitStatus {
    ExitStatus { exit_code: report.exit_code(), signal: report.signal().map(str::to_owned) }
}

fn parse<'a, T: Deserialize<'a>>(params: &'a [u8]) -> Result<T, ServiceError> {
    serde_json::from_slice(params)
        .map_err(|error| ServiceError::new(acpd_wire::codes::INVALID_PARAMS, format!("params: {error}")))
}

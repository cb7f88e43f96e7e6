//! `acpd agents`: which there are, whether they work, and their logins.

mod add;
mod entry;
mod health;
mod installation;
mod login;
mod outcome;
mod outdated;
mod place;
mod remove;
mod trial;
mod update;
mod wish;

use crate::cli::Agents;
use crate::exit::{Code, Failure};
use crate::local_host::{agent_specs, load_config};
use crate::process;
use crate::streams::{print, print_json, remark_over};
use acpd_host::TaskScope;
use acpd_supervisor::{KeeperCommand, Supervisor};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use trial::{Trial, unmet_node_of};

pub(crate) async fn agents(args: Agents) -> Result<(), Failure> {
    match args {
        Agents::List { json, which } => health::list(json, which).await,
        Agents::Add(args) => add::add(*args).await,
        Agents::Outdated(args) => outdated::outdated(args).await,
        Agents::Update(args) => update::update(args).await,
        Agents::Remove(args) => remove::remove(args).await,
        Agents::Check { name, json, config, state_dir } => check(&name, json, config, state_dir).await,
        Agents::Login { name, method, config, state_dir } => {
            login::login(login::Asked { name, method, config, state_dir }).await
        }
    }
}

async fn check(
    name: &str,
    json: bool,
    config: Option<PathBuf>,
    state_dir: Option<PathBuf>,
) -> Result<(), Failure> {
    let config = load_config(config, state_dir)?;
    config.agent(name).map_err(Failure::missing)?;
    let spec = agent_specs(&config).remove(name).expect("the line above found it");
    let trial = Trial::of(&spec).await?;
    match (trial.check.ok, json) {
        (true, false) => print(&trial.describe()).map(drop),
        (false, false) => Err(Failure::Failed(trial.explain())),
        (ok, true) => {
            print_json(&serde_json::to_string(&trial.check)?)?;
            if ok { Ok(()) } else { Err(Failure::Told(Code::Failed)) }
        }
    }
}

/// Starts programs without a host, in a scope of their own.
fn supervisor(scope: &TaskScope) -> Result<Supervisor, Failure> {
    let keeper = KeeperCommand::this_binary(process::KEEPER)?;
    let host = uuid::Uuid::now_v7().to_string();
    Ok(Supervisor::new(keeper, &host, scope.clone()))
}

/// On a terminal, says what is being waited for.
async fn with_progress<T>(name: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let mut seconds = 0;
    loop {
        match tokio::time::timeout(Duration::from_secs(1), &mut work).await {
            Ok(done) => {
                remark_over("");
                return done;
            }
            Err(_) => {
                seconds += 1;
                remark_over(&format!("starting {name}... {seconds} s"));
            }
        }
    }
}

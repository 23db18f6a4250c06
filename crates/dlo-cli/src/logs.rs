//! Structured logs of the process, on stderr.

use dlo::config::{LogFormat, Origin};
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Result};
use crate::output::speak_json;

/// Level of commands that end at once, unless somebody asked for another: their answer is what matters.
const SHORT_COMMAND_LEVEL: &str = "warn";

/// Starts logging as the configuration says.
pub(crate) fn start(config: &dlo::Config, long_running: bool) -> Result {
    let asked = config.show().iter().any(|shown| shown.key == "log.level" && shown.origin != Origin::Default);
    let level = if asked || long_running { config.log.level.as_str() } else { SHORT_COMMAND_LEVEL };
    let filter =
        EnvFilter::try_new(level).map_err(|error| Failure::usage(format!("`log.level` is `{level}`: {error}")))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Only a process that already logs can refuse, and then its choice stands.
    let _ = match config.log.format {
        LogFormat::Text => logs.with_ansi(false).try_init(),
        LogFormat::Json => {
            speak_json();
            logs.json().flatten_event(true).try_init()
        }
    };
    Ok(())
}

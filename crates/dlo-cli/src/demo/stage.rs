//! Everything that the demo stands on, in a fresh folder: configuration, secret, input, receiver, database.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dlo::cloudevents::Intake;
use dlo::config::Overrides;
use dlo::webhook::Secret;
use dlo::{Config, OpenMode, Outbox, ProcessEnv};
use dlo_core::Timestamp;
use dlo_ports::Env;

use super::receiver::Receiver;
use super::script::{Fault, SCRIPT};
use crate::commands::enqueue::{Answered, LineAnswer, Source, Tally, save_all};
use crate::commands::init::write_new;
use crate::context::{Context, office};
use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output::note;
use crate::wire::hex;

const CONFIG: &str = include_str!("../../demo/dlo.toml");
const EVENTS: &str = include_str!("../../demo/events.jsonl");
/// Random bytes of the signing secret.
const SECRET_BYTES: usize = 32;
/// Runs that may begin within one second.
const FOLDERS_A_SECOND: usize = 100;

/// See the module.
pub(crate) struct Stage {
    pub(crate) folder: PathBuf,
    pub(crate) config_file: PathBuf,
    pub(crate) config: Config,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) receiver: Receiver,
    pub(crate) outbox: Outbox,
    input: PathBuf,
}

impl Stage {
    /// Builds it below `parent`.
    pub(crate) async fn build(parent: &Path) -> Result<Self> {
        let env: Arc<dyn Env> = Arc::new(ProcessEnv::new(Context::registry()));
        let folder = fresh_folder(parent, env.now())?;
        let secret_file = folder.join("signing-secret");
        let secret = write_secret(&secret_file, &*env).map_err(|error| Failure::io(secret_file.display(), &error))?;
        let input = folder.join("events.jsonl");
        write_new(&input, EVENTS)?;
        let receiver =
            Receiver::start(Arc::clone(&env), secret).await.map_err(|error| Failure::io("the receiver", &error))?;
        let config_file = folder.join("dlo.toml");
        let text =
            CONFIG.replace("{{base}}", &receiver.base()).replace("{{secret}}", &secret_file.display().to_string());
        write_new(&config_file, &text)?;

        // Nothing of the user's environment changes what the demo shows.
        let config = Config::load(Some(&config_file), &|_| None, &Overrides::default())?;
        let outbox = Outbox::open(&config, Context::registry(), OpenMode::Create).await?;
        office(&outbox).apply_destinations(config.destinations.clone()).await?;
        Ok(Self { folder, config_file, config, env, receiver, outbox, input })
    }

    /// Says what is about to happen, delays first.
    pub(crate) fn tell(&self) {
        note("Dead Letter Office: save first, deliver at least once, hold what can't be delivered.\n");
        note(
            "Delays of this demo are short: retries after 1 s, 2 s, 3 s (default 1, 5, 25, 125 min), at most 3 failed",
        );
        note("attempts (default 5), a deadline of 2 s an emission (default 30 s), probes after 1 s (default 30 s).\n");
        note(format!("A real receiver on {} misbehaves on purpose:", self.receiver.base()));
        for (path, event, behaviours) in SCRIPT {
            let mut labels: Vec<String> = behaviours.iter().map(|behaviour| behaviour.label()).collect();
            labels.dedup();
            note(format!("  {path:<10} {event:<19} {}", labels.join(", ")));
        }
        for fault in Fault::ALL {
            let (path, event, status) = fault.shows_as();
            note(format!("  {path:<10} {:<19} {status} until it is mended", event.unwrap_or("(everything)")));
        }
    }

    /// Saves the input as `dlo enqueue` does.
    pub(crate) async fn enqueue(&self) -> Result<Tally> {
        let file = fs::File::open(&self.input).map_err(|error| Failure::io(self.input.display(), &error))?;
        let intake = Intake::new(self.config.tenant.clone());
        let source = Source::reading(self.input.display().to_string(), file);
        save_all(source, &intake, &self.outbox, &mut Unsaid).await
    }

    /// Lines of the input.
    pub(crate) fn input_lines() -> u64 {
        EVENTS.lines().filter(|line| !line.trim().is_empty()).count() as u64
    }
}

/// The demo's report says more than a row a line would.
struct Unsaid;

impl Answered for Unsaid {
    fn answered(&mut self, _: &LineAnswer, _: &Tally) -> Result {
        Ok(())
    }
}

fn fresh_folder(parent: &Path, now: Timestamp) -> Result<PathBuf> {
    fs::create_dir_all(parent).map_err(|error| Failure::io(parent.display(), &error))?;
    let parent = parent.canonicalize().map_err(|error| Failure::io(parent.display(), &error))?;
    let seconds: String = now.to_string().chars().take_while(|c| *c != '.').filter(|c| !"-:".contains(*c)).collect();
    for number in 0..FOLDERS_A_SECOND {
        let name = if number == 0 { seconds.clone() } else { format!("{seconds}-{number}") };
        let folder = parent.join(name);
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::io(folder.display(), &error)),
        }
    }
    let message = format!("{} has {FOLDERS_A_SECOND} folders of this second", parent.display());
    Err(Failure::new(Exit::Refused, code::EXISTS, message))
}

fn write_secret(file: &Path, env: &dyn Env) -> std::io::Result<Secret> {
    let mut bytes = [0; SECRET_BYTES];
    env.random(&mut bytes);
    let text = hex(&bytes);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?.write_all(text.as_bytes())?;
    Ok(Secret::new(text).expect("64 hexadecimal digits are a signing secret of allowed length"))
}

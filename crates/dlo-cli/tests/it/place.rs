//! A folder of its own for each test, and the binary run in it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Policy whose retries come at once, so that tests wait for nothing.
pub const QUICK_POLICY: &str = r#"
[policy]
max_retry_attempts = 2
schedule = ["0s"]
retry_delay = "0s"
deferred_delay = "0s"
jitter = "none"
emission_deadline = "5s"
"#;

pub struct Place {
    folder: TempDir,
}

/// How a run of the binary ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "stderr lacks {text:?}:\n{}", self.err);
        self
    }

    #[track_caller]
    pub fn shows(self, text: &str) -> Self {
        assert!(self.out.contains(text), "stdout lacks {text:?}:\n{}", self.out);
        self
    }
}

impl Place {
    /// An empty folder.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A folder with a configuration, its database and its destinations applied.
    #[track_caller]
    pub fn with(config: &str) -> Self {
        let place = Self::empty();
        place.dlo(&["init"]).ends(0);
        place.write("dlo.toml", config);
        if config.contains("[[destinations]]") {
            place.dlo(&["destinations", "apply"]).ends(0);
        }
        place
    }

    /// One `noop` destination that takes everything.
    #[track_caller]
    pub fn with_noop() -> Self {
        Self::with(&destination("sink", "noop", "tolerated", "*", ""))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file in the temporary folder");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file in the temporary folder")
    }

    /// The command, with nothing of the surrounding environment that it listens to.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DLO_") || name.contains("COLOR")) {
            command.env_remove(name);
        }
        command
    }

    pub fn dlo(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("the binary runs").into()
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = ["--output", "json"].iter().chain(args).copied().collect();
        self.dlo(&args).ends(0).json()
    }

    pub fn dlo_reading(&self, input: &str, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary starts");
        child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("the binary reads stdin");
        child.wait_with_output().expect("the binary ends").into()
    }

    /// Starts the binary and leaves it running.
    pub fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }
}

/// The binary under test: the one that was built with the tests, or that of `DLO_TEST_BINARY`, such as a release build.
pub fn binary() -> PathBuf {
    std::env::var_os("DLO_TEST_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_dlo").into(), PathBuf::from)
}

/// A `[[destinations]]` table.
pub fn destination(name: &str, emitter: &str, duplicates: &str, event_types: &str, settings: &str) -> String {
    format!(
        "[[destinations]]\nname = \"{name}\"\nemitter = \"{emitter}\"\nduplicates = \"{duplicates}\"\n\
         event_types = [\"{event_types}\"]\nsettings = {{ {settings} }}\n"
    )
}

/// One CloudEvent as a line.
pub fn event(id: &str, event_type: &str, data: &str) -> String {
    format!(
        "{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"/test\",\"type\":\"{event_type}\",\
         \"datacontenttype\":\"application/json\",\"data\":{data}}}\n"
    )
}

/// So many events of a type.
pub fn events(count: usize, event_type: &str) -> String {
    (0..count).map(|number| event(&format!("e-{number}"), event_type, "{\"n\":1}")).collect()
}

/// The values of a field of every row.
pub fn column<'a>(rows: &'a Value, field: &str) -> Vec<&'a str> {
    rows.as_array().expect("a list").iter().map(|row| row[field].as_str().unwrap_or("")).collect()
}

//! Loading: finds the file, reads every key, checks the relations between them.

use core::time::Duration;
use std::io::Read;
use std::path::{Path, PathBuf};

use dlo_core::{DeliveryPolicy, EngineOptions, OptionError, TenantId, WorkerId};
use dlo_ports::env::EmitterError;
use dlo_sqlite::Attach;
use toml::de::DeTable;

use super::destination::{self, Defaults, Placed};
use super::reader::{Reader, Section};
use super::text::FileText;
use super::{
    Config, ConfigError, LogConfig, LogFormat, MetricsConfig, Origin, Overrides, Problem, StoreConfig, StoreKind,
    policy,
};
use crate::{Registry, env_vars};

/// File that is read when nobody names one, if it is there.
pub const DEFAULT_FILE: &str = "dlo.toml";
/// File of the store when nobody names one, beside the configuration file.
pub const DEFAULT_STORE: &str = "dlo.db";
/// Name of the worker when nobody gives one.
pub const DEFAULT_WORKER: &str = "dlo";
/// Largest configuration file, in bytes (1 MiB): thousands of destinations.
pub const MAX_FILE_BYTES: u64 = 1_024 * 1_024;

impl Config {
    /// Reads the file, then puts the environment and the overrides over it, and checks the whole. Everything that is
    /// wrong is reported at once, each with its place.
    ///
    /// `None`: `DLO_CONFIG`, else `dlo.toml` in the working directory if it is there, else the defaults alone. An empty
    /// file is valid.
    pub fn load(
        path: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let file = find_file(path, env)?;
        let empty = DeTable::new();
        let parsed;
        let root = match &file {
            None => &empty,
            Some(file) => {
                parsed = DeTable::parse(&file.text).map_err(|error| syntax_error(file, &error))?;
                parsed.get_ref()
            }
        };
        let mut reader = Reader::new(file.as_ref(), env, overrides);
        let config = read_root(&mut reader, root);
        reader.refuse_unknown_overrides();
        let (shown, problems) = reader.finish();
        if !problems.is_empty() {
            return Err(ConfigError::Invalid { problems });
        }
        Ok(Self { shown, ..config })
    }

    /// Checks each destination's settings by its emitter. Answers with warnings, in sentences: emitter kinds that this
    /// process does not have, and [`dlo_office::advice`].
    pub fn check(&self, registry: &Registry) -> Result<Vec<String>, ConfigError> {
        let mut warnings = Vec::new();
        let mut problems = Vec::new();
        for (spec, place) in self.destinations.iter().zip(&self.places) {
            warnings.extend(dlo_office::advice(spec).map(|advice| format!("{place}: {advice}")));
            match registry.validate(spec) {
                Ok(()) => {}
                Err(EmitterError::UnknownKind { kind }) => warnings.push(format!(
                    "{place}: this process has no emitter of kind `{kind}`: an engine without it holds destination \
                     `{}` and keeps its entries",
                    spec.name
                )),
                Err(EmitterError::Settings { problem, .. }) => problems.push(Problem {
                    place: place.clone(),
                    key: format!("destinations.{}.settings", spec.name),
                    message: problem,
                    hint: None,
                }),
            }
        }
        if problems.is_empty() { Ok(warnings) } else { Err(ConfigError::Invalid { problems }) }
    }
}

fn find_file(path: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<FileText>, ConfigError> {
    let named = path
        .map(Path::to_owned)
        .or_else(|| env(env_vars::CONFIG.name).filter(|path| !path.is_empty()).map(PathBuf::from));
    let must_exist = named.is_some();
    let path = named.unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    match read_file(&path) {
        Ok(text) => Ok(Some(FileText { path, text })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
}

fn read_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::other(format!("larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn syntax_error(file: &FileText, error: &toml::de::Error) -> ConfigError {
    let place = error.span().map_or_else(|| file.path.display().to_string(), |span| file.place(&span));
    let message = error.message().to_owned();
    ConfigError::Invalid { problems: vec![Problem { place, key: String::new(), message, hint: None }] }
}

fn read_root(reader: &mut Reader<'_>, root: &DeTable<'_>) -> Config {
    let file = reader.file.map(|file| file.path.clone());
    let mut section = Section::new(reader, "", Some(root));
    let tenant = section.value("tenant", TenantId::default_tenant());
    let [store, engine, log, metrics, base] =
        ["store", "engine", "log", "metrics", "policy"].map(|name| section.subtable(name));
    let destinations = section.raw("destinations");
    section.finish();

    let store = read_store(reader, store);
    let engine = read_engine(reader, engine);
    let log = read_log(reader, log);
    let metrics = read_metrics(reader, metrics);
    let base = policy::read(reader, "policy.", base, &DeliveryPolicy::default(), true);
    let placed = destination::read_all(reader, destinations, Defaults { tenant: &tenant, policy: &base });
    check_relations(reader, &engine, &base, &placed);
    let places = placed.iter().map(|p| reader.file.map_or_else(String::new, |file| file.place(&p.span))).collect();
    let destinations = placed.into_iter().map(|placed| placed.spec).collect();
    Config { file, tenant, store, engine, destinations, log, metrics, shown: Vec::new(), places }
}

fn read_store(reader: &mut Reader<'_>, table: Option<&DeTable<'_>>) -> StoreConfig {
    let mut section = Section::new(reader, "store.", table);
    let kind = section.value("kind", StoreKind::Sqlite);
    let (path, origin) = section.value_from("path", PathBuf::from(DEFAULT_STORE));
    let path = resolve(&section, path, &origin);
    section.reshow("path", &path);
    let attach = section.value("attach", Attach::Own);
    section.finish();
    StoreConfig { kind, path, attach }
}

/// Paths of the file, and defaults beside it, count from its folder; those of flags and variables from the working
/// directory.
fn resolve(section: &Section<'_, '_, '_>, path: PathBuf, origin: &Origin) -> PathBuf {
    match (section.reader.file, origin) {
        (Some(file), Origin::File { .. } | Origin::Default) => file.resolve(&path),
        _ => path,
    }
}

fn read_engine(reader: &mut Reader<'_>, table: Option<&DeTable<'_>>) -> EngineOptions {
    let worker = WorkerId::new(DEFAULT_WORKER).expect("the default name is a valid worker name");
    let base = EngineOptions::new(worker);
    let mut section = Section::new(reader, "engine.", table);
    let options = EngineOptions {
        worker: section.value("worker", base.worker),
        mode: section.value("mode", base.mode),
        lease: section.value("lease", base.lease),
        idle_poll: section.value("idle_poll", base.idle_poll),
        shutdown_grace: section.value("shutdown_grace", base.shutdown_grace),
        history: section.value("history", base.history),
        enqueue_key_window: section.value("enqueue_key_window", base.enqueue_key_window),
        tenants: section.value("tenants", base.tenants),
        destinations: section.value("destinations", base.destinations),
    };
    section.finish();
    options
}

fn read_log(reader: &mut Reader<'_>, table: Option<&DeTable<'_>>) -> LogConfig {
    let mut section = Section::new(reader, "log.", table);
    let level = section.value("level", "info".to_owned());
    if !level.split(',').all(is_log_directive) {
        let rule = "must be `error`, `warn`, `info`, `debug`, `trace` or `off`, or these by target, such as \
                    `info,dlo_engine=debug`";
        section.reader.problem_of(&["log.level".to_owned()], rule);
    }
    let format = section.value("format", LogFormat::Text);
    section.finish();
    LogConfig { level, format }
}

/// A level, of everything or of a target. A target alone would be taken for "everything of it, and nothing else", which
/// is what a misspelt level would come to.
fn is_log_directive(text: &str) -> bool {
    let level = text.rsplit_once('=').map_or(text, |(_, level)| level).trim();
    ["error", "warn", "info", "debug", "trace", "off"].iter().any(|known| level.eq_ignore_ascii_case(known))
}

fn read_metrics(reader: &mut Reader<'_>, table: Option<&DeTable<'_>>) -> MetricsConfig {
    let mut section = Section::new(reader, "metrics.", table);
    let listen = section.optional("listen");
    let file = section.optional_from("file").map(|(path, origin)| {
        let path = resolve(&section, path, &origin);
        section.reshow("file", &path);
        path
    });
    let interval = section.value("interval", Duration::from_secs(15));
    if interval < Duration::from_secs(1) || interval > Duration::from_hours(1) {
        section.reader.problem_of(&["metrics.interval".to_owned()], "must be 1s to 1h");
    }
    section.finish();
    MetricsConfig { listen, file, interval }
}

fn check_relations(reader: &mut Reader<'_>, engine: &EngineOptions, base: &DeliveryPolicy, placed: &[Placed]) {
    if let Err(error) = engine.validate() {
        reader.problem_of(&[format!("engine.{}", error.option)], rule_of(&error));
    }
    if let Err(error) = base.validate() {
        reader.problem_of(&[format!("policy.{}", error.option)], rule_of(&error));
        return;
    }
    if let Err(error) = engine.validate_against(base) {
        let keys = ["engine.lease", "policy.emission_deadline", "policy.page", "policy.concurrency"];
        reader.problem_of(&keys.map(str::to_owned), rule_of(&error));
        return;
    }
    for Placed { spec, prefix, .. } in placed {
        if let Err(error) = spec.policy.validate() {
            let keys = [format!("{prefix}policy.{}", error.option), format!("policy.{}", error.option)];
            reader.problem_of(&keys, rule_of(&error));
        } else if let Err(error) = engine.validate_against(&spec.policy) {
            let keys = ["emission_deadline", "page", "concurrency"].map(|option| format!("{prefix}policy.{option}"));
            reader.problem_of(&keys, rule_of(&error));
        }
    }
}

fn rule_of(error: &OptionError) -> String {
    format!("is {}: {}", error.value, error.rule)
}

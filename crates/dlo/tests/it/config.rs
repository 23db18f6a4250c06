//! The configuration file: defaults, origins, and every kind of error with its place.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dlo::Registry;
use dlo::config::{Config, ConfigError, DEFAULT_WORKER, Origin, Overrides};
use dlo::core::{DeliveryPolicy, Duplicates, EngineOptions, WorkerId};
use proptest::prelude::*;

fn no_env(_: &str) -> Option<String> {
    None
}

fn load(text: &str) -> Result<Config, ConfigError> {
    load_with(text, &no_env, &Overrides::default())
}

fn load_with(text: &str, env: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dlo.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(Some(&path), env, overrides)
}

/// Problems as text, without the folder of the file.
fn problems(text: &str) -> Vec<String> {
    match load(text) {
        Err(ConfigError::Invalid { problems }) => problems
            .iter()
            .map(|problem| {
                let text = problem.to_string();
                text.find("dlo.toml").map_or(text.clone(), |at| text[at..].to_owned())
            })
            .collect(),
        other => panic!("must be invalid: {other:?}"),
    }
}

/// Lines of the example file with the given mark at their start, without it.
fn marked(mark: &str) -> String {
    let lines = Config::default_toml().lines().filter_map(|line| line.strip_prefix(mark));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn an_empty_file_has_the_defaults() {
    let config = load("").unwrap();
    assert_eq!(config.engine, EngineOptions::new(WorkerId::new(DEFAULT_WORKER).unwrap()));
    assert!(config.destinations.is_empty());
    assert_eq!(config.store.path.file_name().unwrap(), "dlo.db");
    assert!(config.show().iter().all(|shown| shown.origin == Origin::Default));
}

#[test]
fn the_example_file_is_valid_and_says_nothing_but_defaults() {
    let from_example = load(Config::default_toml()).unwrap();
    assert!(from_example.show().iter().all(|shown| shown.origin == Origin::Default));
}

#[test]
fn the_example_file_states_every_real_default() {
    let uncommented: String = Config::default_toml()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(value) if !value.starts_with(' ') => format!("{value}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let stated = load(&uncommented).unwrap();
    let real = load("").unwrap();
    let values = |config: &Config| -> BTreeMap<String, String> {
        // The store's path is shown with the folder of the file, which differs.
        let shown = config.show().iter().filter(|shown| shown.key != "store.path");
        shown.map(|shown| (shown.key.clone(), shown.value.clone())).collect()
    };
    assert_eq!(values(&stated), values(&real));
    for shown in stated.show().iter().filter(|shown| !shown.value.is_empty()) {
        assert!(matches!(shown.origin, Origin::File { .. }), "`{}` is not in the example file", shown.key);
    }
}

#[test]
fn the_examples_of_the_example_file_are_valid() {
    let examples = marked("#     ");
    let metrics: String = examples.lines().take(2).map(|line| format!("{line}\n")).collect();
    let rest: String = examples.lines().skip(2).map(|line| format!("{line}\n")).collect();
    let config = load(&format!("[metrics]\n{metrics}\n{rest}")).unwrap();
    assert!(config.metrics.listen.is_some() && config.metrics.file.is_some());
    assert_eq!(config.destinations.len(), 1);
    config.check(&Registry::builtin()).unwrap();
}

#[test]
fn a_destination_is_read_with_its_own_policy_over_the_common_one() {
    let config = load(
        r#"
        [policy]
        max_retry_attempts = 9
        page = 10
        [[destinations]]
        name = "mail"
        emitter = "noop"
        duplicates = "deduplicated(1d)"
        event_types = ["a.b", "c.*"]
        settings = { z = 1, a = [true, 1.5, "x"], t = 2026-01-02T03:04:05Z }
        pace = { per_minute = 60 }
        [destinations.policy]
        page = 20
        schedule = ["1s", "1m 30s"]
        [destinations.policy.breaker]
        failures = 7
        "#,
    )
    .unwrap();
    let mail = &config.destinations[0];
    assert_eq!(mail.duplicates, Duplicates::Deduplicated { window: Duration::from_secs(86_400) });
    assert_eq!(mail.settings, r#"{"a":[true,1.5,"x"],"t":"2026-01-02T03:04:05Z","z":1}"#);
    assert_eq!((mail.pace.unwrap().per_minute, mail.pace.unwrap().burst), (60, 1));
    let mut policy = DeliveryPolicy { max_retry_attempts: 9, page: 20, ..DeliveryPolicy::default() };
    policy.schedule = vec![Duration::from_secs(1), Duration::from_secs(90)];
    policy.breaker.failures = 7;
    assert_eq!(mail.policy, policy);
    let shown: BTreeMap<_, _> = config.show().iter().map(|s| (s.key.as_str(), s.value.as_str())).collect();
    assert_eq!(shown["destinations.mail.policy.page"], "20");
    assert!(!shown.contains_key("destinations.mail.policy.max_retry_attempts"), "inherited, so not repeated");
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let text = "tenant = \"file\"\n[store]\npath = \"file.db\"\n[log]\nlevel = \"debug\"\n";
    let env = |name: &str| match name {
        "DLO_STORE_PATH" => Some("env.db".to_owned()),
        "DLO_LOG_LEVEL" => Some("warn".to_owned()),
        _ => None,
    };
    let overrides = Overrides::default().set("store.path", "--store", "flag.db");
    let config = load_with(text, &env, &overrides).unwrap();
    assert_eq!(config.store.path, Path::new("flag.db"), "a flag's path counts from the working directory");
    let origin = |key: &str| config.show().iter().find(|shown| shown.key == key).unwrap().origin.to_string();
    assert_eq!(origin("store.path"), "flag --store");
    assert_eq!(origin("log.level"), "env DLO_LOG_LEVEL");
    assert!(origin("tenant").ends_with("dlo.toml:1"));
    assert_eq!(origin("engine.lease"), "default");
}

#[test]
fn every_environment_variable_stands_over_a_key() {
    for variable in dlo::env_vars::ALL.iter().filter(|variable| !variable.key.is_empty()) {
        let value = match variable.key {
            "log.format" => "json",
            "log.level" => "debug",
            "metrics.listen" => "127.0.0.1:1",
            _ => "given",
        };
        let env = |name: &str| (name == variable.name).then(|| value.to_owned());
        let config = load_with("", &env, &Overrides::default()).unwrap();
        let shown = config.show().iter().find(|shown| shown.key == variable.key).unwrap();
        assert_eq!((&shown.origin, shown.value.as_str()), (&Origin::Env(variable.name), &*format!("{value:?}")));
    }
}

#[test]
fn the_page_of_environment_variables_says_what_the_code_says() {
    let rows = dlo::env_vars::ALL.iter().map(|variable| {
        let key = if variable.key.is_empty() { "–".to_owned() } else { format!("`{}`", variable.key) };
        format!("| `{}` | {key} | {} |", variable.name, variable.doc)
    });
    let page = include_str!("../../docs/environment.md");
    let stated: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(stated, rows.collect::<Vec<_>>());
}

#[test]
fn what_is_wrong_in_a_flag_or_variable_names_it() {
    let env = |name: &str| (name == "DLO_METRICS_LISTEN").then(|| "somewhere".to_owned());
    let overrides = Overrides::default().set("tenant", "--tenant", "Not A Tenant").set("store.pth", "--stroe", "x");
    let Err(ConfigError::Invalid { problems }) = load_with("", &env, &overrides) else { panic!("must be invalid") };
    let said: Vec<_> = problems.iter().map(|problem| (problem.place.as_str(), problem.key.as_str())).collect();
    assert_eq!(
        said,
        [("flag --tenant", "tenant"), ("env DLO_METRICS_LISTEN", "metrics.listen"), ("flag --stroe", "store.pth")]
    );
}

#[test]
fn paths_of_the_file_count_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dlo.toml");
    std::fs::write(&path, "[store]\npath = \"data/dlo.db\"\n").unwrap();
    let config = Config::load(Some(&path), &no_env, &Overrides::default()).unwrap();
    assert_eq!(config.store.path, folder.path().join("data/dlo.db"));
}

#[test]
fn every_problem_names_its_place_key_and_rule() {
    for (text, expected) in [
        ("[engine]\nleese = \"5m\"\n", "dlo.toml:2:1: `engine.leese` is not a known key (did you mean `lease`?)"),
        ("[engin]\n", "dlo.toml:1:2: `engin` is not a known key (did you mean `engine`?)"),
        ("[engine]\nlease = 5\n", "dlo.toml:2:9: `engine.lease` must be a text in quotes, not a whole number"),
        ("[policy]\npage = -1\n", "dlo.toml:2:8: `policy.page` must be a whole number from 0 to 4294967295"),
        ("[policy]\npage = \"x\"\n", "dlo.toml:2:8: `policy.page` must be a whole number, not a text"),
        ("[policy]\nmax_retry_attempts = 0\n", "dlo.toml:2:22: `policy.max_retry_attempts` is 0: must be at least 1"),
        (
            "[policy]\ndead_letter_on_max_retry_attempts = false\n",
            "dlo.toml:2:37: `policy.dead_letter_on_max_retry_attempts` is false: needs `alternative = \"max_age\"` or \
             `alternative = \"manual_review\"` beside it",
        ),
        ("[store]\nkind = \"oracle\"\n", "dlo.toml:2:8: `store.kind` must be `sqlite`"),
        ("[metrics]\ninterval = \"1ms\"\n", "dlo.toml:2:12: `metrics.interval` must be 1s to 1h"),
        ("store = 3\n", "dlo.toml:1:9: `store` must be a table, not a whole number"),
        (
            "[engine]\npassword = \"x\"\n",
            "dlo.toml:2:1: `engine.password` is not a known key (secrets never stand in this file: refer to one with \
             `env:NAME` or `file:/path` in the destination's `settings`)",
        ),
    ] {
        assert_eq!(problems(text), [expected]);
    }
}

#[test]
fn a_lease_that_a_full_page_does_not_fit_in_is_refused() {
    let found = problems("[engine]\nlease = \"1m\"\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("dlo.toml:2:9: `engine.lease` is 60s: must be at least ceil(page"), "{found:?}");
}

#[test]
fn problems_of_destinations_name_the_destination() {
    let text = r#"
[[destinations]]
name = "mail"
emitter = "noop"
[[destinations]]
name = "mail"
emitter = "noop"
duplicates = "maybe"
[[destinations]]
name = "mail"
emitter = "noop"
duplicates = "harmful"
[[destinations]]
name = "mail"
emitter = "noop"
duplicates = "harmful"
"#;
    let found = problems(text);
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].contains("dlo.toml:2:1: `destinations.mail.duplicates` is required"), "{found:#?}");
    assert!(found[1].contains("dlo.toml:8:14: `destinations.mail.duplicates` must be `harmful`"), "{found:#?}");
    assert!(found[2].contains("dlo.toml:13:1: `destinations.mail` is there twice"), "{found:#?}");
}

#[test]
fn secrets_in_the_file_are_refused_and_not_repeated() {
    let text = r#"
[[destinations]]
name = "mail"
emitter = "webhook"
duplicates = "harmful"
[destinations.settings]
url = "https://user:hunter2@example.org/"
secrets = ["env:OK", "whsec_hunter2"]
headers = { Authorization = "Bearer hunter2" }
"#;
    let found = problems(text);
    assert_eq!(found.len(), 3, "{found:#?}");
    for (problem, key) in found.iter().zip(["settings.url", "settings.secrets", "settings.headers.Authorization"]) {
        assert!(problem.contains(key), "{problem}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn syntax_errors_have_a_place_and_repeat_nothing_of_the_line() {
    let found = problems("tenant = \"a\"\npassword = hunter2 x\n");
    assert!(found[0].starts_with("dlo.toml:2:"), "{found:?}");
    assert!(!found[0].contains("hunter2"), "{found:?}");
}

#[test]
fn a_named_file_must_be_there() {
    let missing = Config::load(Some(Path::new("/nonexistent/dlo.toml")), &no_env, &Overrides::default());
    assert_eq!(missing.unwrap_err().code(), "config.unreadable");
    let env = |name: &str| (name == "DLO_CONFIG").then(|| "/nonexistent/dlo.toml".to_owned());
    assert_eq!(Config::load(None, &env, &Overrides::default()).unwrap_err().code(), "config.unreadable");
}

#[test]
fn emitters_check_their_settings_and_unknown_kinds_are_warnings() {
    let text = |emitter: &str| {
        format!("[[destinations]]\nname = \"x\"\nemitter = \"{emitter}\"\nduplicates = \"tolerated\"\n")
    };
    let warnings = load(&text("pigeon")).unwrap().check(&Registry::builtin()).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("`pigeon`"), "{warnings:?}");
    assert!(load(&text("noop")).unwrap().check(&Registry::builtin()).unwrap().is_empty());
    let Err(ConfigError::Invalid { problems }) = load(&text("webhook")).unwrap().check(&Registry::builtin()) else {
        panic!("a webhook needs a URL")
    };
    assert!(problems[0].to_string().ends_with("dlo.toml:1:1: `destinations.x.settings` `url` is required"));
    let short = text("noop").replace("tolerated", "deduplicated(1m)");
    let warnings = load(&short).unwrap().check(&Registry::builtin()).unwrap();
    assert!(warnings[0].contains("deduplication window is 60 s"), "{warnings:?}");
}

proptest! {
    /// Any text is an answer or an error with a place, and never the end of the process.
    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}=\"',.#\n a-z0-9_äß-]{0,120}") {
        if let Err(ConfigError::Invalid { problems }) = load(&text) {
            prop_assert!(problems.iter().all(|problem| problem.place.contains("dlo.toml:")));
        }
    }
}

#[test]
fn a_misspelt_level_is_an_error_and_not_a_target() {
    for level in ["warn", "off", "info,dlo_engine=debug", "WARN"] {
        load(&format!("[log]\nlevel = \"{level}\"\n")).unwrap();
    }
    for level in ["loud", "info,dlo_engine", "dlo_engine=verbose"] {
        let found = problems(&format!("[log]\nlevel = \"{level}\"\n"));
        assert!(found[0].starts_with("dlo.toml:2:9: `log.level` must be `error`"), "{found:?}");
    }
}

#[test]
fn settings_are_shown_with_their_own_line() {
    let text = "[[destinations]]\nname = \"a\"\nemitter = \"noop\"\nduplicates = \"tolerated\"\nsettings = { }\n";
    let config = load(text).unwrap();
    let shown = config.show().iter().find(|shown| shown.key == "destinations.a.settings").unwrap();
    assert!(shown.origin.to_string().ends_with("dlo.toml:5"), "{}", shown.origin);
}

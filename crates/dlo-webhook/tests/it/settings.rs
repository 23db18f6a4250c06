//! Settings: what is taken, what is refused and how that is said.

use std::time::Duration;

use dlo_core::Duplicates;
use dlo_ports::env::EmitterError;
use dlo_webhook::{AllowPrivate, Mode, Settings, SettingsError, validate};
use serde_json::{Value, json};

use crate::support::{destination, factory};

fn refused(settings: &Value) -> SettingsError {
    Settings::parse(&settings.to_string()).unwrap_err()
}

#[test]
fn one_setting_is_enough() {
    let settings = Settings::parse(r#"{"url": "https://hooks.example.com/in"}"#).unwrap();
    assert_eq!(settings.mode, Mode::Binary);
    assert_eq!(settings.allow_private, AllowPrivate::No);
    assert_eq!(settings.connect_timeout, Duration::from_secs(10));
    assert_eq!(settings.response_limit, 65_536);
    assert_eq!(settings.user_agent, format!("dlo-webhook/{}", env!("CARGO_PKG_VERSION")));
    assert!(settings.secrets.is_empty() && settings.headers.is_empty() && settings.disclose.is_empty());
    assert!(!settings.allow_plaintext);
}

#[test]
fn every_setting_is_checked() {
    // Setting, a value that breaks its rule, and which setting the error must name.
    let cases = [
        ("url", json!("ftp://example.com/"), "url"),
        ("url", json!("example.com"), "url"),
        ("url", json!("https://"), "url"),
        ("url", json!(5), "url"),
        ("url", json!("https://user:canary@example.com/"), "url"),
        ("url", json!("https://canary@example.com/"), "url"),
        ("url", json!("https://example.com/#canary"), "url"),
        ("url", json!(format!("https://example.com/{}", "x".repeat(2_048))), "url"),
        ("url", json!("http://example.com/"), "url"),
        ("url", json!("http://10.0.0.1/"), "url"),
        ("mode", json!("batched-canary"), "mode"),
        ("secrets", json!("whsec_canary"), "secrets"),
        ("secrets", json!(["env:A", "whsec_canary"]), "secrets[1]"),
        ("secrets", json!(["env:whsec_canary"]), "secrets[0]"),
        ("secrets", json!(["env:"]), "secrets[0]"),
        ("secrets", json!(["file:relative/canary"]), "secrets[0]"),
        ("secrets", json!(vec!["env:A"; 9]), "secrets"),
        ("authorization", json!("Bearer canary"), "authorization"),
        ("authorization", json!(["env:A"]), "authorization"),
        ("secret_headers", json!({"x-api-key": "canary"}), "secret_headers.x-api-key"),
        ("secret_headers", json!({"authorization": "env:A"}), "secret_headers.authorization"),
        ("headers", json!({"x-api-key": "canary"}), "headers.x-api-key"),
        ("headers", json!({"x-auth-token": "canary"}), "headers.x-auth-token"),
        ("headers", json!({"Host": "canary"}), "headers.Host"),
        ("headers", json!({"content-length": "1"}), "headers.content-length"),
        ("headers", json!({"Webhook-Id": "canary"}), "headers.Webhook-Id"),
        ("headers", json!({"ce-type": "canary"}), "headers.ce-type"),
        ("headers", json!({"a b": "canary"}), "headers.a b"),
        ("headers", json!({"x": "canary\r\ny: z"}), "headers.x"),
        ("headers", json!({"x": "é canary"}), "headers.x"),
        ("headers", json!({"x": " canary"}), "headers.x"),
        ("headers", json!({"x": ""}), "headers.x"),
        ("headers", json!({"x": 5}), "headers"),
        ("allow_private", json!("canary"), "allow_private"),
        ("allow_private", json!(["canary"]), "allow_private"),
        ("allow_private", json!(["10.0.0.1"]), "allow_private"),
        ("allow_private", json!([5]), "allow_private"),
        ("allow_plaintext", json!("canary"), "allow_plaintext"),
        ("connect_timeout", json!(10), "connect_timeout"),
        ("connect_timeout", json!("10"), "connect_timeout"),
        ("connect_timeout", json!("0s"), "connect_timeout"),
        ("connect_timeout", json!("6m"), "connect_timeout"),
        ("connect_timeout", json!("-1s"), "connect_timeout"),
        ("connect_timeout", json!("canary"), "connect_timeout"),
        ("response_limit", json!(-1), "response_limit"),
        ("response_limit", json!(1_048_577), "response_limit"),
        ("response_limit", json!("canary"), "response_limit"),
        ("user_agent", json!("canary\n"), "user_agent"),
        ("ca_file", json!("relative/canary"), "ca_file"),
        ("disclose", json!(["canary"]), "disclose"),
        ("disclose", json!("canary"), "disclose"),
        ("timeout", json!("canary"), "timeout"),
        ("Url", json!("canary"), "Url"),
    ];
    for (setting, value, named) in cases {
        let mut settings = json!({"url": "https://hooks.example.com/"});
        settings[setting] = value.clone();
        let error = refused(&settings);
        assert_eq!(error.setting, named, "{setting} = {value}: {error}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    assert_eq!(refused(&json!({})).to_string(), "`url` is required");
    assert_eq!(refused(&json!([])).setting, "settings");
    let twice = json!({"url": "https://a.example/", "headers": {"X-A": "1"}, "secret_headers": {"x-a": "env:A"}});
    assert_eq!(refused(&twice).setting, "headers.x-a");
    let names: serde_json::Map<String, Value> = (0..33).map(|n| (format!("x-{n}"), json!("1"))).collect();
    assert_eq!(refused(&json!({"url": "https://a.example/", "headers": names})).setting, "headers");
}

#[test]
fn values_at_their_bounds_are_taken() {
    for (setting, value) in [
        ("connect_timeout", json!("1ms")),
        ("connect_timeout", json!("5m")),
        ("response_limit", json!(0)),
        ("response_limit", json!(1_048_576)),
        ("secrets", json!(vec!["env:A"; 8])),
        ("allow_private", json!(["10.0.0.0/8", "fd00::/8"])),
        ("authorization", json!("file:/run/secrets/hook")),
    ] {
        let mut settings = json!({"url": "https://hooks.example.com/"});
        settings[setting] = value.clone();
        assert!(validate(&settings.to_string()).is_ok(), "{setting} = {value}");
    }
}

#[test]
fn plain_http_goes_to_loopback_only_unless_allowed() {
    for (settings, taken) in [
        (json!({"url": "http://127.0.0.1:8080/", "allow_private": true}), true),
        (json!({"url": "http://[::1]/", "allow_private": true}), true),
        (json!({"url": "http://localhost/", "allow_private": true}), true),
        (json!({"url": "http://hook.localhost/", "allow_private": true}), true),
        (json!({"url": "http://127.0.0.1/"}), false),
        (json!({"url": "http://10.0.0.1/", "allow_private": true}), false),
        (json!({"url": "http://10.0.0.1/", "allow_private": true, "allow_plaintext": true}), true),
        (json!({"url": "http://hooks.example.com/", "allow_plaintext": true}), true),
        (json!({"url": "http://localhost.example.com/"}), false),
    ] {
        assert_eq!(validate(&settings.to_string()).is_ok(), taken, "{settings}");
    }
}

#[test]
fn a_destination_of_another_kind_is_not_ours() {
    let mut destination = destination(&json!({"url": "https://a.example/"}), Duplicates::Tolerated);
    destination.spec.emitter = "noop".to_owned();
    let error = factory(&[]).build(&destination).err();
    assert_eq!(error, Some(EmitterError::UnknownKind { kind: "noop".to_owned() }));
    destination.spec.emitter = "webhook".to_owned();
    destination.spec.settings = r#"{"url": 1}"#.to_owned();
    let Some(EmitterError::Settings { kind, problem }) = factory(&[]).build(&destination).err() else {
        panic!("settings are checked when the emitter is built too")
    };
    assert_eq!((kind.as_str(), problem.starts_with("`url` must be")), ("webhook", true));
}

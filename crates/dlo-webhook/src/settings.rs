//! The settings of a webhook destination: one JSON object, read here and nowhere else.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::{Host, Url};

use crate::address::{AddressRules, AllowPrivate};
use crate::header::{self, HeaderRule};
use crate::secret::SecretRef;

/// Default of [`Settings::connect_timeout`].
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest [`Settings::connect_timeout`]: longer than any lease would wait.
pub const MAX_CONNECT_TIMEOUT: Duration = Duration::from_mins(5);
/// Default of [`Settings::response_limit`], in bytes.
pub const DEFAULT_RESPONSE_LIMIT: u64 = 64 * 1_024;
/// Largest [`Settings::response_limit`], in bytes: nothing in a response body is used.
pub const MAX_RESPONSE_LIMIT: u64 = 1_024 * 1_024;
/// Most signing secrets: the current one, and those being replaced.
pub const MAX_SECRETS: usize = 8;
/// Most `headers` and `secret_headers` together.
pub const MAX_STATIC_HEADERS: usize = 32;
/// Longest URL, in bytes; common servers refuse longer ones.
pub const MAX_URL_BYTES: usize = 2_048;
/// Most ranges in `allow_private`.
pub const MAX_RANGES: usize = 64;

/// How the event is laid into the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// CloudEvents binary mode: the body is the payload as it stands, attributes are `ce-` headers.
    #[default]
    Binary,
    /// CloudEvents structured mode: the body is one `application/cloudevents+json` object.
    Structured,
}

/// A group of envelope attributes that is sent only if the destination asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disclose {
    /// On whose behalf: `principal`.
    Principal,
    /// Which workload: `workload`.
    Workload,
    /// Where the data may be: `region`.
    Region,
    /// `policyversion` and `policyhash`.
    Policy,
    /// Agent context, as `dlo-agent-…` headers.
    Agent,
}

/// Where requests go. Its `Debug` form shows the origin only: paths and queries often hold tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// The URL.
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// Whether requests go over TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The address, if the host is written as one in any spelling: such hosts never reach a resolver.
    fn literal(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        }
    }

    fn is_loopback(&self) -> bool {
        match self.literal() {
            Some(address) => address.to_canonical().is_loopback(),
            None => self.0.host_str().is_some_and(|host| host == "localhost" || host.ends_with(".localhost")),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}

/// Settings of a destination whose emitter is `webhook`. An unknown name is an error.
///
/// The method is always `POST`, the protocol HTTP/1.1, redirects are refused, and `HTTP_PROXY` and its relatives are
/// ignored. There is no setting for the time a try may take: the engine gives each emission its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `url` (required): `https`, or `http` within `allow_plaintext`. At most 2048 bytes, no user name or password, no
    /// fragment. What it holds is stored and shown, so it must not hold a secret.
    pub url: Endpoint,
    /// `mode`: `binary` (default) or `structured`.
    pub mode: Mode,
    /// `secrets`: up to 8 references to signing secrets; each signs every request. Default none: requests are unsigned.
    pub secrets: Vec<SecretRef>,
    /// `authorization`: reference to the whole value of the `Authorization` header, for example `Bearer …`.
    pub authorization: Option<SecretRef>,
    /// `secret_headers`: further headers whose values are secrets, as references; for example `x-api-key`.
    pub secret_headers: BTreeMap<String, SecretRef>,
    /// `headers`: further headers whose values are no secrets. Names that this emitter sets itself are refused.
    pub headers: BTreeMap<String, String>,
    /// `allow_private`: `false` (default), `true`, or a list of address ranges such as `10.1.0.0/16`.
    pub allow_private: AllowPrivate,
    /// `allow_plaintext`: `true` allows `http` to hosts that are not loopback. Default `false`.
    pub allow_plaintext: bool,
    /// `connect_timeout`: name resolution, TCP and TLS together; `"10s"` (default), from `"1ms"` to `"5m"`.
    pub connect_timeout: Duration,
    /// `response_limit`: how much of a response body is read so that its connection can be used again, in bytes;
    /// 65536 (default), from 0 to 1048576. What was read is dropped; more is left unread.
    pub response_limit: u64,
    /// `user_agent`: default `dlo-webhook/` and the version.
    pub user_agent: String,
    /// `ca_file`: absolute path of PEM certificates. If set, exactly these authorities are trusted, else the system's.
    pub ca_file: Option<PathBuf>,
    /// `disclose`: any of `principal`, `workload`, `region`, `policy`, `agent`. Default none.
    pub disclose: Vec<Disclose>,
}

/// A setting is not valid: which, the rule, and never its value (it may be a secret in the wrong place).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` {rule}")]
pub struct SettingsError {
    /// Which setting.
    pub setting: String,
    /// What it must be.
    pub rule: String,
}

impl SettingsError {
    /// Stable code of this error.
    pub const CODE: &'static str = "webhook.settings_invalid";

    fn new(setting: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { setting: setting.into(), rule: rule.into() }
    }
}

const NAMES: [&str; 13] = [
    "url",
    "mode",
    "secrets",
    "authorization",
    "secret_headers",
    "headers",
    "allow_private",
    "allow_plaintext",
    "connect_timeout",
    "response_limit",
    "user_agent",
    "ca_file",
    "disclose",
];

impl Settings {
    /// Reads and checks the settings object of a destination.
    ///
    /// # Errors
    /// The first setting that is not valid, with the rule that it breaks.
    pub fn parse(json: &str) -> Result<Self, SettingsError> {
        let mut given: Map<String, Value> =
            serde_json::from_str(json).map_err(|_| SettingsError::new("settings", "must be one JSON object"))?;
        if let Some(unknown) = given.keys().find(|name| !NAMES.contains(&name.as_str())) {
            let shown: String = unknown.chars().take(64).collect();
            return Err(SettingsError::new(shown, format!("is not a setting; known are {}", NAMES.join(", "))));
        }
        let settings = Self {
            url: endpoint(&mut given)?,
            mode: mode(&mut given)?,
            secrets: secrets(&mut given)?,
            authorization: authorization(&mut given)?,
            secret_headers: secret_headers(&mut given)?,
            headers: headers(&mut given)?,
            allow_private: allow_private(&mut given)?,
            allow_plaintext: take(&mut given, "allow_plaintext", "must be true or false")?.unwrap_or_default(),
            connect_timeout: connect_timeout(&mut given)?,
            response_limit: response_limit(&mut given)?,
            user_agent: user_agent(&mut given)?,
            ca_file: ca_file(&mut given)?,
            disclose: disclose(&mut given)?,
        };
        settings.check_header_names()?;
        settings.check_address()?;
        Ok(settings)
    }

    /// The address rules that follow from the settings.
    pub(crate) fn address_rules(&self) -> AddressRules {
        AddressRules { allow: self.allow_private.clone(), loopback_only: !self.url.is_tls() && !self.allow_plaintext }
    }

    fn check_header_names(&self) -> Result<(), SettingsError> {
        if self.headers.len() + self.secret_headers.len() > MAX_STATIC_HEADERS {
            return Err(SettingsError::new("headers", "and `secret_headers` must have at most 32 names together"));
        }
        match self.headers.keys().find(|name| self.secret_headers.contains_key(*name)) {
            Some(name) => Err(SettingsError::new(format!("headers.{name}"), "must not be in `secret_headers` too")),
            None => Ok(()),
        }
    }

    fn check_address(&self) -> Result<(), SettingsError> {
        if !self.url.is_tls() && !self.allow_plaintext && !self.url.is_loopback() {
            return Err(SettingsError::new(
                "url",
                "must be https: http goes to loopback only, unless `allow_plaintext` is true",
            ));
        }
        let Some(address) = self.url.literal() else { return Ok(()) };
        self.address_rules().check(address).map_err(|denied| {
            SettingsError::new(
                "url",
                format!("must not be an address in a denied range ({denied}); `allow_private` opens private ranges"),
            )
        })
    }
}

fn take<T: DeserializeOwned>(
    given: &mut Map<String, Value>,
    name: &'static str,
    rule: &str,
) -> Result<Option<T>, SettingsError> {
    match given.remove(name) {
        None => Ok(None),
        // The cause is left out: serde shows the value that it stumbled over.
        Some(value) => serde_json::from_value(value).map(Some).map_err(|_| SettingsError::new(name, rule)),
    }
}

fn endpoint(given: &mut Map<String, Value>) -> Result<Endpoint, SettingsError> {
    const RULE: &str = "must be an http or https URL of at most 2048 bytes with a host";
    let error = |rule: &str| SettingsError::new("url", rule);
    let text: String = take(given, "url", RULE)?.ok_or_else(|| error("is required"))?;
    if text.len() > MAX_URL_BYTES {
        return Err(error(RULE));
    }
    let url = Url::parse(&text).map_err(|_| error(RULE))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(error(RULE));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(error("must not hold a user name or password: use `authorization`"));
    }
    if url.fragment().is_some() {
        return Err(error("must not have a fragment"));
    }
    Ok(Endpoint(url))
}

fn mode(given: &mut Map<String, Value>) -> Result<Mode, SettingsError> {
    const RULE: &str = "must be `binary` or `structured`";
    match take::<String>(given, "mode", RULE)?.as_deref() {
        None => Ok(Mode::default()),
        Some("binary") => Ok(Mode::Binary),
        Some("structured") => Ok(Mode::Structured),
        Some(_) => Err(SettingsError::new("mode", RULE)),
    }
}

fn secret_ref(setting: &str, text: &str) -> Result<SecretRef, SettingsError> {
    SecretRef::parse(text).ok_or_else(|| SettingsError::new(setting, format!("must be {}", SecretRef::RULE)))
}

fn secrets(given: &mut Map<String, Value>) -> Result<Vec<SecretRef>, SettingsError> {
    let rule = format!("must be a list of up to 8 items, each {}", SecretRef::RULE);
    let written: Vec<String> = take(given, "secrets", &rule)?.unwrap_or_default();
    if written.len() > MAX_SECRETS {
        return Err(SettingsError::new("secrets", rule));
    }
    written.iter().enumerate().map(|(at, text)| secret_ref(&format!("secrets[{at}]"), text)).collect()
}

fn authorization(given: &mut Map<String, Value>) -> Result<Option<SecretRef>, SettingsError> {
    let rule = format!("must be {}", SecretRef::RULE);
    let written: Option<String> = take(given, "authorization", &rule)?;
    written.map(|text| secret_ref("authorization", &text)).transpose()
}

fn secret_headers(given: &mut Map<String, Value>) -> Result<BTreeMap<String, SecretRef>, SettingsError> {
    let rule = format!("must be an object of header names, each with {}", SecretRef::RULE);
    let written: BTreeMap<String, String> = take(given, "secret_headers", &rule)?.unwrap_or_default();
    written
        .into_iter()
        .map(|(name, text)| {
            let name = header_name("secret_headers", &name, HeaderRule::Secret)?;
            let reference = secret_ref(&format!("secret_headers.{name}"), &text)?;
            Ok((name, reference))
        })
        .collect()
}

fn headers(given: &mut Map<String, Value>) -> Result<BTreeMap<String, String>, SettingsError> {
    const RULE: &str = "must be an object of header names and texts";
    let written: BTreeMap<String, String> = take(given, "headers", RULE)?.unwrap_or_default();
    written
        .into_iter()
        .map(|(name, value)| {
            let name = header_name("headers", &name, HeaderRule::Plain)?;
            if header::is_value(&value) {
                Ok((name, value))
            } else {
                let rule = "must be 1 to 2048 visible ASCII characters and inner spaces";
                Err(SettingsError::new(format!("headers.{name}"), rule))
            }
        })
        .collect()
}

fn header_name(setting: &str, name: &str, rule: HeaderRule) -> Result<String, SettingsError> {
    let shown: String = name.chars().take(64).collect();
    header::setting_name(name, rule).map_err(|problem| SettingsError::new(format!("{setting}.{shown}"), problem))
}

fn allow_private(given: &mut Map<String, Value>) -> Result<AllowPrivate, SettingsError> {
    const RULE: &str = "must be true, false, or a list of up to 64 address ranges such as `10.1.0.0/16`";
    let error = || SettingsError::new("allow_private", RULE);
    match given.remove("allow_private") {
        None | Some(Value::Bool(false)) => Ok(AllowPrivate::No),
        Some(Value::Bool(true)) => Ok(AllowPrivate::Yes),
        Some(Value::Array(ranges)) if ranges.len() <= MAX_RANGES => {
            let read = |range: &Value| range.as_str().and_then(|text| text.parse::<IpNet>().ok()).ok_or_else(error);
            Ok(AllowPrivate::Ranges(ranges.iter().map(read).collect::<Result<_, _>>()?))
        }
        Some(_) => Err(error()),
    }
}

fn connect_timeout(given: &mut Map<String, Value>) -> Result<Duration, SettingsError> {
    const RULE: &str = "must be a time from 1ms to 5m, such as `10s` or `500ms`";
    let Some(text) = take::<String>(given, "connect_timeout", RULE)? else { return Ok(DEFAULT_CONNECT_TIMEOUT) };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let span = number.parse::<u32>().ok().and_then(|number| match unit {
        "ms" => Some(Duration::from_millis(number.into())),
        "s" => Some(Duration::from_secs(number.into())),
        "m" => Some(Duration::from_secs(u64::from(number) * 60)),
        _ => None,
    });
    span.filter(|span| !span.is_zero() && *span <= MAX_CONNECT_TIMEOUT)
        .ok_or_else(|| SettingsError::new("connect_timeout", RULE))
}

fn response_limit(given: &mut Map<String, Value>) -> Result<u64, SettingsError> {
    const RULE: &str = "must be a whole number of bytes from 0 to 1048576";
    let limit = take(given, "response_limit", RULE)?.unwrap_or(DEFAULT_RESPONSE_LIMIT);
    if limit > MAX_RESPONSE_LIMIT { Err(SettingsError::new("response_limit", RULE)) } else { Ok(limit) }
}

fn user_agent(given: &mut Map<String, Value>) -> Result<String, SettingsError> {
    const RULE: &str = "must be 1 to 2048 visible ASCII characters and inner spaces";
    let text = take(given, "user_agent", RULE)?
        .unwrap_or_else(|| concat!("dlo-webhook/", env!("CARGO_PKG_VERSION")).to_owned());
    if header::is_value(&text) { Ok(text) } else { Err(SettingsError::new("user_agent", RULE)) }
}

fn ca_file(given: &mut Map<String, Value>) -> Result<Option<PathBuf>, SettingsError> {
    const RULE: &str = "must be an absolute path";
    let path: Option<PathBuf> = take(given, "ca_file", RULE)?;
    match path {
        Some(path) if !path.is_absolute() => Err(SettingsError::new("ca_file", RULE)),
        path => Ok(path),
    }
}

fn disclose(given: &mut Map<String, Value>) -> Result<Vec<Disclose>, SettingsError> {
    const RULE: &str = "must be a list of any of `principal`, `workload`, `region`, `policy`, `agent`";
    let written: Vec<String> = take(given, "disclose", RULE)?.unwrap_or_default();
    let mut groups = written
        .iter()
        .map(|name| match name.as_str() {
            "principal" => Ok(Disclose::Principal),
            "workload" => Ok(Disclose::Workload),
            "region" => Ok(Disclose::Region),
            "policy" => Ok(Disclose::Policy),
            "agent" => Ok(Disclose::Agent),
            _ => Err(SettingsError::new("disclose", RULE)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

//! Secrets: named in settings, read at use, never printed.

use core::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Looks a name up in the environment.
pub type EnvLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Fewest bytes of a signing secret. Standard Webhooks asks for 24 to 64 random bytes; fewer than 16 can be guessed.
pub const MIN_SECRET_BYTES: usize = 16;
/// Most bytes of a secret, as text or in a file. Bounds what is read from a wrong path.
pub const MAX_SECRET_BYTES: usize = 8 * 1_024;

/// Where a secret is: `env:NAME` or `file:/absolute/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretRef {
    /// An environment variable of this process.
    Env(String),
    /// A file; one trailing line end is not part of the secret.
    File(PathBuf),
}

impl SecretRef {
    /// The rule, as error messages say it.
    pub(crate) const RULE: &'static str = "a reference `env:NAME` or `file:/absolute/path`, never the secret itself";

    /// Reads a reference; `None` if it is not one. The text is not kept or shown: it may be a secret by mistake.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("env:") {
            let valid = !name.is_empty()
                && name.len() <= 128
                && !name.starts_with("whsec_")
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            return valid.then(|| Self::Env(name.to_owned()));
        }
        let path = Path::new(text.strip_prefix("file:")?);
        path.is_absolute().then(|| Self::File(path.to_owned()))
    }

    /// Reads the secret now, so that a rotated one is used by the next try.
    pub(crate) async fn read(&self, env: &EnvLookup) -> Result<Zeroizing<Vec<u8>>, SecretError> {
        let bytes = match self {
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| self.error("is not set"))?;
                Zeroizing::new(text.into_bytes())
            }
            Self::File(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || read_file(&path))
                    .await
                    .map_err(|_| self.error("could not be read"))?
                    .map_err(|problem| self.error(problem))?
            }
        };
        if bytes.is_empty() {
            return Err(self.error("is empty"));
        }
        if bytes.len() > MAX_SECRET_BYTES {
            return Err(self.error("is longer than 8192 bytes"));
        }
        Ok(bytes)
    }

    pub(crate) fn error(&self, problem: &'static str) -> SecretError {
        SecretError { reference: Some(self.clone()), problem }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let problem = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist",
        std::io::ErrorKind::PermissionDenied => "may not be read by this process",
        _ => "could not be read",
    };
    // A pipe or device would hang the try until its deadline.
    if !std::fs::metadata(path).map_err(problem)?.is_file() {
        return Err("is not a regular file");
    }
    let file = std::fs::File::open(path).map_err(problem)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES + 2));
    file.take(MAX_SECRET_BYTES as u64 + 2).read_to_end(&mut bytes).map_err(problem)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}

/// A secret can't be used. Says where it is and what is wrong, never what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretError {
    reference: Option<SecretRef>,
    problem: &'static str,
}

impl SecretError {
    /// Stable code of this error.
    pub const CODE: &'static str = "webhook.secret_unusable";
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference {
            Some(reference) => write!(f, "secret `{reference}` {}", self.problem),
            None => write!(f, "signing secret {}", self.problem),
        }
    }
}

impl std::error::Error for SecretError {}

/// A signing secret of Standard Webhooks. Its `Debug` form shows nothing of it.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// From its written form: `whsec_` and base64, else the bytes as they stand.
    ///
    /// # Errors
    /// Fewer than [`MIN_SECRET_BYTES`] or more than [`MAX_SECRET_BYTES`] bytes, or what follows `whsec_` is not base64.
    pub fn new(written: impl AsRef<[u8]>) -> Result<Self, SecretError> {
        let error = |problem| SecretError { reference: None, problem };
        let written = written.as_ref();
        let bytes = match written.strip_prefix(b"whsec_") {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| error("is not base64 after `whsec_`"))?,
            None => written.to_vec(),
        };
        let bytes = Zeroizing::new(bytes);
        if bytes.len() < MIN_SECRET_BYTES {
            return Err(error("is shorter than 16 bytes; use 24 to 64 random bytes"));
        }
        if bytes.len() > MAX_SECRET_BYTES {
            return Err(error("is longer than 8192 bytes"));
        }
        Ok(Self(bytes))
    }

    /// Reads and decodes a named signing secret.
    pub(crate) async fn read(reference: &SecretRef, env: &EnvLookup) -> Result<Self, SecretError> {
        let written = reference.read(env).await?;
        Self::new(&*written).map_err(|error| reference.error(error.problem))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

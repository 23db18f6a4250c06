//! How each type of value is read from the file, from text (environment, flags) and written back.

use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

use dlo_core::{
    DestinationName, Duplicates, Reason, TenantId, WorkerId,
    destination::EventTypeRule,
    policy::{Alternative, DrainMode, Jitter},
    text::ErrorText,
};
use dlo_sqlite::Attach;
use toml::de::DeValue;

use super::{LogFormat, StoreKind};
use crate::duration;

/// A type of value. Errors say what would be right, so that they read well after the key's name.
pub(super) trait Setting: Sized {
    /// From a value of the file; by default, a text.
    fn from_value(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some(text) => Self::from_text(text),
            None => Err(format!("must be a text in quotes, not {}", kind_of(value))),
        }
    }

    /// From text.
    fn from_text(text: &str) -> Result<Self, String>;

    /// As it would stand in the file.
    fn show(&self) -> String;
}

/// The kind of a value, for people.
pub(super) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A text as it would stand in the file.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn from_value(value: &DeValue<'_>) -> Result<Self, String> {
                let number = value.as_integer().and_then(|n| i128::from_str_radix(n.as_str(), n.radix()).ok());
                match number.map(Self::try_from) {
                    Some(Ok(number)) => Ok(number),
                    Some(Err(_)) => Err(format!("must be a whole number from 0 to {}", Self::MAX)),
                    None => Err(format!("must be a whole number, not {}", kind_of(value))),
                }
            }

            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!("must be a whole number from 0 to {}", Self::MAX))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

whole_numbers!(u32, u64);

impl Setting for bool {
    fn from_value(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("must be true or false, not {}", kind_of(value)))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be true or false".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for Duration {
    fn from_text(text: &str) -> Result<Self, String> {
        duration::parse(text).map_err(|error| error.to_string())
    }

    fn show(&self) -> String {
        quoted(&duration::format(*self))
    }
}

impl Setting for String {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err("must not be blank and must not have control characters".to_owned());
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Setting for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self::from)
    }

    fn show(&self) -> String {
        quoted(&self.display().to_string())
    }
}

impl Setting for SocketAddr {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an address with a port, such as `127.0.0.1:9464` or `[::1]:9464`".to_owned())
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Setting for ErrorText {
    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self::new)
    }

    fn show(&self) -> String {
        quoted(self.as_str())
    }
}

macro_rules! named {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: dlo_core::id::ParseIdError| format!("must be {}", error.rule))
            }

            fn show(&self) -> String {
                quoted(self.as_str())
            }
        }
    )*};
}

named!(TenantId, DestinationName, WorkerId, EventTypeRule);

impl Setting for Reason {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| format!("must be {}", error.rule))
    }

    fn show(&self) -> String {
        quoted(self.as_str())
    }
}

macro_rules! choices {
    ($($type:ty { $($text:literal => $value:path),* })*) => {$(
        impl Setting for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok($value),)*
                    _ => Err(format!("must be {}", [$(concat!("`", $text, "`")),*].join(" or "))),
                }
            }

            fn show(&self) -> String {
                match self {
                    $($value => quoted($text),)*
                }
            }
        }
    )*};
}

choices! {
    StoreKind { "sqlite" => StoreKind::Sqlite }
    Attach {
        "own" => Attach::Own,
        "application" => Attach::Application,
        "application_set_wal" => Attach::ApplicationSetWal
    }
    LogFormat { "text" => LogFormat::Text, "json" => LogFormat::Json }
    DrainMode { "claim" => DrainMode::Claim, "plain" => DrainMode::Plain }
    Jitter { "equal" => Jitter::Equal, "none" => Jitter::None }
    Alternative { "max_age" => Alternative::MaxAge, "manual_review" => Alternative::ManualReview }
}

impl Setting for Duplicates {
    fn from_text(text: &str) -> Result<Self, String> {
        let window = text.strip_prefix("deduplicated(").and_then(|rest| rest.strip_suffix(')'));
        match (text, window.map(duration::parse)) {
            ("tolerated", _) => Ok(Self::Tolerated),
            ("harmful", _) => Ok(Self::Harmful),
            (_, Some(Ok(window))) => Ok(Self::Deduplicated { window }),
            _ => Err("must be `harmful`, `tolerated` or `deduplicated(24h)` with the provider's window".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Deduplicated { window } => quoted(&format!("deduplicated({})", duration::format(*window))),
            Self::Tolerated | Self::Harmful => quoted(self.name()),
        }
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn from_value(value: &DeValue<'_>) -> Result<Self, String> {
        let items = value.as_array().ok_or_else(|| format!("must be a list, not {}", kind_of(value)))?;
        let read = |(at, item): (usize, &toml::Spanned<DeValue<'_>>)| {
            T::from_value(item.get_ref()).map_err(|rule| format!("item {}: {rule}", at + 1))
        };
        items.iter().enumerate().map(read).collect()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.split(',').map(|item| T::from_text(item.trim())).collect()
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Setting::show).collect::<Vec<_>>().join(", "))
    }
}

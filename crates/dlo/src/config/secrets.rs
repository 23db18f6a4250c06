//! Secrets never stand in the file: only references to them do.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::Reader;

/// What to do instead.
pub(super) const SECRET_HINT: &str =
    "secrets never stand in this file: refer to one with `env:NAME` or `file:/path` in the destination's `settings`";

/// Names, in lower case and without separators, that speak of a secret.
const SECRET_NAMES: [&str; 10] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
];

/// Whether a key's name speaks of a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| plain.contains(secret))
}

/// Reports every text under a secret's name that is not a reference, and every URL with a password in it.
pub(super) fn refuse_inline(reader: &mut Reader<'_>, prefix: &str, table: &DeTable<'_>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        check(reader, &key, is_secret_name(name.get_ref()), value);
    }
}

fn check(reader: &mut Reader<'_>, key: &str, secret: bool, value: &Spanned<DeValue<'_>>) {
    match value.get_ref() {
        DeValue::String(text) => {
            let reference = text.starts_with("env:") || text.starts_with("file:");
            if secret && !reference {
                let message = "looks like a secret that stands in the file";
                reader.problem_with_hint(&value.span(), key, message, Some(SECRET_HINT.to_owned()));
            } else if has_userinfo(text) {
                let message = "has a user name or password in its URL";
                reader.problem_with_hint(&value.span(), key, message, Some(SECRET_HINT.to_owned()));
            }
        }
        DeValue::Array(items) => items.iter().for_each(|item| check(reader, key, secret, item)),
        DeValue::Table(table) => {
            for (name, value) in table {
                let inner = format!("{key}.{}", name.get_ref());
                check(reader, &inner, secret || is_secret_name(name.get_ref()), value);
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

fn has_userinfo(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in ["secret", "signing_secrets", "Api-Key", "AUTHORIZATION", "access_token", "privateKey"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["url", "headers", "owner", "mode", "keyring_path"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn user_info_is_found_in_the_authority_only() {
        assert!(has_userinfo("https://user:pass@example.org/"));
        assert!(!has_userinfo("https://example.org/@user"));
        assert!(!has_userinfo("mail@example.org"));
    }
}

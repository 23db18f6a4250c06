//! What the store is and what its commit promises, read from the settings that are really in force.

use std::path::Path;

use dlo_ports::{StoreError, store::StoreDescription};
use rusqlite::Connection;

use crate::error::Doing;

/// Describes the store. `synchronous` and `fullfsync` are settings of a connection, and every connection of a store is
/// set up alike, so that a reading one can speak for the one that writes.
pub(crate) fn describe(conn: &Connection, file: &Path, schema_version: u64) -> Result<StoreDescription, StoreError> {
    let settings = Settings::read(conn)?;
    let mut description = StoreDescription {
        kind: "sqlite",
        location: file.display().to_string(),
        engine_version: rusqlite::version().to_owned(),
        schema_version,
        promises: Vec::new(),
        warnings: Vec::new(),
    };
    settings.say(&mut description);
    say_file_system(file, &mounts(), &mut description);
    Ok(description)
}

struct Settings {
    journal_mode: String,
    synchronous: i64,
    fullfsync: bool,
}

impl Settings {
    fn read(conn: &Connection) -> Result<Self, StoreError> {
        let number = |pragma: &str| conn.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let journal_mode =
            conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).doing("read the journal mode")?;
        let synchronous = number("PRAGMA synchronous").doing("read the level of synchronisation")?;
        let fullfsync = number("PRAGMA fullfsync").doing("read how files are flushed")?;
        Ok(Self { journal_mode, synchronous, fullfsync: fullfsync != 0 })
    }

    fn say(&self, description: &mut StoreDescription) {
        let (promises, warnings) = (&mut description.promises, &mut description.warnings);
        match self.synchronous {
            0 => warnings.push(
                "`synchronous` is OFF: a commit waits for nothing, so an operating system crash or power loss can lose \
                 answered commits and damage the file; set it to FULL"
                    .to_owned(),
            ),
            1 => warnings.push(
                "`synchronous` is NORMAL: a commit survives a killed process, but an operating system crash or power \
                 loss can lose the latest answered commits; set it to FULL"
                    .to_owned(),
            ),
            _ => promises.push(flush_promise(self.fullfsync)),
        }
        promises.push(
            "a verb is one transaction: after a killed process or a power loss it is there as a whole or not at all"
                .to_owned(),
        );
        promises.push("a read is one snapshot, and waits for no writer".to_owned());
        promises.push("delivery is at least once; nothing here promises more".to_owned());
        if !self.journal_mode.eq_ignore_ascii_case("wal") {
            warnings.push(format!(
                "`journal_mode` is {} instead of WAL: readers and writers wait for each other, and a snapshot blocks \
                 commits",
                self.journal_mode.to_uppercase()
            ));
        }
        if cfg!(target_os = "macos") && !self.fullfsync {
            warnings.push(
                "`fullfsync` is off: macOS then keeps flushed pages in the drive's cache, so that a power loss can lose \
                 answered commits"
                    .to_owned(),
            );
        }
    }
}

fn flush_promise(fullfsync: bool) -> String {
    let call = if cfg!(target_os = "macos") && fullfsync { "F_FULLFSYNC" } else { "fsync" };
    format!(
        "an answered commit was flushed with {call} before the answer: it survives a killed process, an operating \
         system crash and a power loss, as far as file system and device keep what they confirm"
    )
}

/// The mount table; empty where the system has none to read.
fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mounts").unwrap_or_default()
}

fn say_file_system(file: &Path, mounts: &str, description: &mut StoreDescription) {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let Some(kind) = file_system(&file, mounts) else { return };
    let warnings = &mut description.warnings;
    match kind {
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "9p" | "afs" | "ceph" | "glusterfs" | "lustre" | "fuse.sshfs" => {
            warnings.push(format!(
                "the file is on a network file system ({kind}): SQLite's locks and WAL need a local one, and two hosts \
                 could damage it; move it to a local disk"
            ));
        }
        "tmpfs" | "ramfs" => warnings.push(format!(
            "the file is in memory ({kind}): everything is gone when this machine stops; move it to a disk"
        )),
        "overlay" => warnings.push(
            "the file is in a container's writable layer (overlay): everything is gone with the container; move it to a \
             volume"
                .to_owned(),
        ),
        _ => description.promises.push(format!("the file is on a local file system ({kind})")),
    }
}

/// Kind of the file system that holds a path: the longest mount point above it; of equal ones the later covers.
fn file_system<'a>(file: &Path, mounts: &'a str) -> Option<&'a str> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let point = fields.nth(1)?.replace("\\040", " ");
            let kind = fields.next()?;
            file.starts_with(&point).then_some((point.len(), kind))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "/dev/a / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\ntmpfs /data/fast\\040one tmpfs rw 0 0\n\
                          /dev/b /data/fast\\040one/disk xfs rw 0 0\n";

    fn described(file: &str) -> StoreDescription {
        let mut description = StoreDescription {
            kind: "sqlite",
            location: String::new(),
            engine_version: String::new(),
            schema_version: 1,
            promises: Vec::new(),
            warnings: Vec::new(),
        };
        say_file_system(Path::new(file), MOUNTS, &mut description);
        description
    }

    #[test]
    fn the_longest_mount_point_decides() {
        let cases = [
            ("/var/dlo.db", Some("ext4")),
            ("/data/dlo.db", Some("nfs4")),
            ("/database/dlo.db", Some("ext4")),
            ("/data/fast one/dlo.db", Some("tmpfs")),
            ("/data/fast one/disk/dlo.db", Some("xfs")),
        ];
        for (file, kind) in cases {
            assert_eq!(file_system(Path::new(file), MOUNTS), kind, "{file}");
        }
        assert_eq!(file_system(Path::new("/x"), ""), None);
    }

    #[test]
    fn file_systems_that_keep_less_are_named() {
        assert!(described("/data/dlo.db").warnings[0].contains("network file system (nfs4)"));
        assert!(described("/data/fast one/dlo.db").warnings[0].contains("in memory"));
        assert!(described("/var/dlo.db").warnings.is_empty());
    }

    #[test]
    fn weaker_settings_are_warned_of_and_promise_nothing() {
        let say = |journal_mode: &str, synchronous| {
            let mut description = described("/var/dlo.db");
            let journal_mode = journal_mode.to_owned();
            Settings { journal_mode, synchronous, fullfsync: true }.say(&mut description);
            description
        };
        let full = say("wal", 2);
        assert!(full.warnings.is_empty(), "{:?}", full.warnings);
        assert!(full.promises[1].contains("flushed"), "{:?}", full.promises);
        for (synchronous, word) in [(0, "OFF"), (1, "NORMAL")] {
            let less = say("wal", synchronous);
            assert!(less.warnings[0].contains(word), "{:?}", less.warnings);
            assert!(less.promises.iter().all(|promise| !promise.contains("flushed")), "{:?}", less.promises);
        }
        assert!(say("delete", 2).warnings[0].contains("DELETE instead of WAL"));
    }
}

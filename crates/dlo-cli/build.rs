//! Embeds every page of `docs/errors/` into the binary, so that `dlo explain CODE` needs no network and no files.
//!
//! The table is generated, because a page that exists but is not listed by hand would not be found by anybody.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let pages = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts"))
        .join("../../docs/errors")
        .components()
        .collect::<PathBuf>();
    println!("cargo::rerun-if-changed={}", pages.display());

    let mut found: Vec<PathBuf> = fs::read_dir(&pages)
        .map(|folder| folder.filter_map(Result::ok).map(|file| file.path()).collect())
        .unwrap_or_default();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();

    let mut table = String::from("&[\n");
    for path in &found {
        println!("cargo::rerun-if-changed={}", path.display());
        let code = path.file_stem().and_then(|stem| stem.to_str()).expect("page names are ASCII codes");
        if code != "README" && code != "index" {
            let file = format!("{code}.md");
            writeln!(
                table,
                "    ({code:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../docs/errors/\", {file:?}))),"
            )
            .expect("writing to a string can't fail");
        }
    }
    table.push(']');
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets it for build scripts")).join("error_pages.rs");
    fs::write(target, table).expect("the build folder can be written to");
}

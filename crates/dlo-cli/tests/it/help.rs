//! Help, completions, explanations, colours, wrong usage.

use crate::place::Place;

#[test]
fn help_documents_exit_codes_and_every_verb() {
    let help = Place::empty().dlo(&["--help"]).ends(0).shows("Exit codes:");
    for verb in [
        "demo",
        "init",
        "enqueue",
        "run",
        "entries",
        "destinations",
        "workers",
        "dead-letters",
        "redrive",
        "stats",
        "doctor",
        "audit",
        "explain",
        "config",
        "completions",
    ] {
        assert!(help.out.contains(&format!("\n  {verb} ")), "{verb} is missing:\n{}", help.out);
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    let place = Place::empty();
    place.dlo(&["frobnicate"]).ends(2);
    place.dlo(&["redrive", "dl_1", "--reason", "x"]).ends(2).says("dead letter id");
    place.dlo(&["redrive", "dl_00000000000000000000000000000000"]).ends(2).says("--reason");
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        Place::empty().dlo(&["completions", shell]).ends(0).shows("dead-letters");
    }
}

#[test]
fn explain_prints_the_page_of_a_code() {
    let place = Place::empty();
    place.dlo(&["explain", "outbox.outcome_ambiguous"]).ends(0).shows("# `outbox.outcome_ambiguous`");
    let page = place.json(&["explain", "store.fenced"]);
    assert_eq!(page["code"], "store.fenced");
    let list = place.json(&["explain", "--list"]);
    assert!(list.as_array().unwrap().iter().any(|row| row["code"] == "http.too_many_requests"));
}

#[test]
fn an_unknown_code_is_refused_with_near_ones() {
    let ran = Place::empty().dlo(&["explain", "outcome_ambiguous"]).ends(4);
    ran.says("error[cli.not_found]").says("outbox.outcome_ambiguous");
}

#[test]
fn no_color_wins_over_forced_color() {
    let place = Place::empty();
    let run = |variables: &[&str]| {
        let mut command = place.command(&["explain", "nothing.at.all"]);
        for variable in variables {
            command.env(variable, "1");
        }
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    assert!(run(&["CLICOLOR_FORCE"]).contains('\u{1b}'), "forced colour is not shown");
    assert!(!run(&["CLICOLOR_FORCE", "NO_COLOR"]).contains('\u{1b}'));
    assert!(!run(&[]).contains('\u{1b}'), "a pipe gets no colour");
}

#[test]
fn errors_can_be_json_lines() {
    let ran = Place::empty().dlo(&["--log-format", "json", "explain", "nothing.at.all"]).ends(4);
    let error: serde_json::Value = serde_json::from_str(ran.err.trim()).unwrap();
    assert_eq!(error["code"], "cli.not_found");
}

#[test]
fn errors_of_the_command_line_are_json_too() {
    let place = Place::empty();
    let in_json = |ran: crate::place::Ran| -> serde_json::Value { serde_json::from_str(ran.err.trim()).unwrap() };
    let error = in_json(place.dlo(&["--log-format", "json", "entries", "show", "x"]).ends(2));
    assert_eq!(error["code"], "cli.usage");
    assert!(error["message"].as_str().unwrap().contains("entry id `x` is not valid"), "{error}");
    let mut command = place.command(&["--config", "nowhere.toml", "stats"]);
    let ran: crate::place::Ran = command.env("DLO_LOG_FORMAT", "json").output().unwrap().into();
    assert_eq!(in_json(ran.ends(2))["code"], "config.unreadable");
    place.dlo(&["--log-format", "json", "--help"]).ends(0).shows("Exit codes:");
}

#[test]
fn the_page_of_the_command_line_names_every_exit_code_and_verb() {
    let page = include_str!("../../../../docs/cli.md");
    let help = Place::empty().dlo(&["--help"]).ends(0).out;
    let codes = help.split_once("Exit codes:").unwrap().1.lines().filter_map(|line| line.trim().split_once(' '));
    let codes: Vec<&str> = codes.map(|(code, _)| code).filter(|code| code.parse::<u8>().is_ok()).collect();
    assert_eq!(codes.len(), 9);
    for code in codes {
        assert!(page.contains(&format!("| {code} |")), "exit code {code} is missing in docs/cli.md");
    }
    let commands = help.split_once("Commands:").unwrap().1.split_once("Options:").unwrap().0;
    for verb in commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        let named = page.contains(&format!("| `{verb}`")) || page.contains(&format!("| `{verb} "));
        assert!(verb.is_empty() || verb == "help" || named, "{verb} is missing in docs/cli.md");
    }
}

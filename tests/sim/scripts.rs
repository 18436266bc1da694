//! Every script of `fixtures/sim`: early media, hold, re-INVITE and redirects as files, each with what is expected of
//! it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringer::cli::sim::script::{call, load};
use ringer::engine::sim;
use ringer::engine::sim::script::Script;
use ringer::provider::canned::Canned;

use super::broken;
use crate::program::{PATIENCE, ringer};

/// Seeds of each script: what is expected does not hang on one.
const SEEDS: [u64; 2] = [1, 7];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sim")
}

#[test]
fn every_script_is_played_and_meets_its_expectations() {
    let voices = Arc::new(Canned::default());
    let entries =
        std::fs::read_dir(folder()).expect("the folder is there").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.file_name().is_some_and(|name| name != "hashes.txt")).collect();
    files.sort();
    assert!(files.len() >= 20, "{files:?}");
    let mut wrong = Vec::new();
    for file in &files {
        let script = match load(file) {
            Ok(script) => script,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        assert!(script.expectations() > 0, "{}: nothing is expected", file.display());
        for seed in SEEDS {
            let outcome = sim::run(call(script.clone(), seed, &voices)).expect("it runs");
            let warnings = script.unmet(&outcome).into_iter().chain(broken(seed, &outcome));
            wrong.extend(warnings.map(|why| format!("{}, seed {seed}: {why}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_script_and_seed_give_the_same_bytes() {
    let voices = Arc::new(Canned::default());
    let script = load(&folder().join("early_media_and_words.txt")).expect("it is well-formed");
    let run = |seed| sim::run(call(script.clone(), seed, &voices)).expect("it runs");
    assert!(run(3) == run(3), "two runs differ");
    assert!(run(3) != run(4), "the seed counts");
}

#[test]
fn what_is_not_met_is_told_with_file_and_line() {
    let voices = Arc::new(Canned::default());
    let text = "
        until 3
        0.3 agent early_media
        1.0 agent answers
        expect caller event hold
        expect caller event call.early_media at 2 +- 0.1
        expect caller event call.early_media count 2
        expect caller early_media seconds 5 +- 0.1
        expect caller early_media silent
        expect caller ended agent_hangup
        expect caller recording agent audible between 20 and 21
        expect caller media to nowhere between 2 and 2.019
        expect caller media to 192.0.2.2:30000 between 2 and 2.019
        expect caller warning contains \"codec\"
        expect sip contains \"UPDATE sip:\"
        expect sip lacks \"INVITE sip:\"
        expect sip count of \"INVITE\" = 2
    ";
    let script = Script::parse("t.txt", text).expect("it is well-formed");
    let outcome = sim::run(call(script.clone(), 1, &voices)).expect("it runs");
    let unmet = script.unmet(&outcome);
    let expect = [
        "t.txt:5: expect caller event hold: it never happened",
        "t.txt:6: expect caller event call.early_media at 2 +- 0.1: it happened at 0.32",
        "t.txt:7: expect caller event call.early_media count 2: it happened at 0.32",
        "t.txt:8: expect caller early_media seconds 5 +- 0.1: 0.7",
        "t.txt:9: expect caller early_media silent: its loudest 10 ms have -2",
        "t.txt:10: expect caller ended agent_hangup: it ended by shutdown",
        "t.txt:11: expect caller recording agent audible between 20 and 21: the recording goes from 1.0",
        "t.txt:12: expect caller media to nowhere between 2 and 2.019: 1 packets went, the first at 2.0",
        "t.txt:13: expect caller media to 192.0.2.2:30000 between 2 and 2.019: at 2.0",
        "t.txt:14: expect caller warning contains \"codec\": the warnings are []",
        "t.txt:15: expect sip contains \"UPDATE sip:\": it is not in the log",
        "t.txt:16: expect sip lacks \"INVITE sip:\": it is in the log",
        "t.txt:17: expect sip count of \"INVITE\" = 2: there are 1",
    ];
    assert_eq!(unmet.len(), expect.len(), "{unmet:#?}");
    for (found, expect) in unmet.iter().zip(expect) {
        assert!(found.starts_with(expect), "{found}\n{expect}");
    }
}

/// Plays `script` by the program and returns its exit code with what it wrote.
async fn play(script: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = ringer(&["sim", "--script"]);
    command.arg(script).args(more);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("in time").expect("it was built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn the_command_plays_a_script_and_names_what_is_not_met() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let out = folder.path().join("out");
    let kept = ["--seed", "3", "--out", out.to_str().expect("text")];
    let (code, stdout, stderr) = play(&self::folder().join("early_media.txt"), &kept).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for file in ["recording.wav", "early_media.wav", "timeline.json", "sip.log"] {
        assert!(out.join("3/caller").join(file).exists(), "{file}");
    }
    assert!(!out.join("3/agent/early_media.wav").exists(), "the agent hears nothing before its answer");

    let file = folder.path().join("mine.txt");
    let shown = file.display();
    std::fs::write(&file, "0.5 agent refuses 486\nexpect caller ended shutdown\n").expect("it is writable");
    let unmet = format!("{shown}:2: expect caller ended shutdown: it ended by rejected");
    let (code, stdout, _) = play(&file, &[]).await;
    assert!(code == Some(1) && stdout.contains(&unmet), "{code:?} {stdout}");
    let (code, stdout, _) = play(&file, &["--json"]).await;
    let line: serde_json::Value = serde_json::from_str(&stdout).expect("a line of JSON");
    assert_eq!((code, &line["problems"], &line["reason"]), (Some(1), &serde_json::json!([unmet]), &"rejected".into()));

    std::fs::write(&file, "0.5 agent sings\n").expect("it is writable");
    let (code, stdout, stderr) = play(&file, &[]).await;
    assert!(code == Some(1) && stdout.is_empty(), "{code:?} {stdout}");
    assert!(stderr.contains(&format!("{shown}:1: \"sings\" is not the action")), "{stderr}");
    let (code, _, stderr) = play(&folder.path().join("none.txt"), &[]).await;
    assert!(code == Some(1) && stderr.contains("none.txt: No such file"), "{code:?} {stderr}");
}

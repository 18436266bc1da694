//! `ringer config check`: what it prints and how it ends, as a shell sees it.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::program::ringer;

async fn check(folder: &Path, settings: &str, more: &[&str]) -> Output {
    let file = folder.join("ringer.toml");
    std::fs::write(&file, settings).expect("a file");
    let file = file.to_str().expect("a path of ASCII");
    let mut command = ringer(&[&["config", "check", "--config", file], more].concat());
    command.stderr(std::process::Stdio::piped()).output().await.expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test]
async fn good_settings_are_shown_and_bad_ones_are_named() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let numbers = "[rate_limit.routes]\n\"POST /v1/add-agent\" = 3\n[phone_numbers]\npool = [\"+1 (415) 555-0100\"]\n";
    let said = check(folder.path(), numbers, &["--json"]).await;
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let all: Value = serde_json::from_str(&text(&said.stdout)).expect("JSON");
    assert_eq!(all["phone_numbers"]["pool"][0], "+14155550100");

    let good =
        "[server]\nlisten = \"127.0.0.1:8099\"\n[limits]\nmax_calls = 7\n[security]\ninternal_token = \"hush-hush\"\n";
    let said = check(folder.path(), good, &[]).await;
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let printed = text(&said.stdout);
    assert!(
        printed.starts_with("The settings are good: API 127.0.0.1:8099, ") && printed.contains("at most 7 calls"),
        "{printed}"
    );

    let said = check(folder.path(), good, &["--json"]).await;
    assert_eq!(said.status.code(), Some(0));
    let found = text(&said.stdout);
    let all: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!((&all["limits"]["max_calls"], &all["server"]["listen"]), (&7.into(), &"127.0.0.1:8099".into()));
    assert!(all["security"]["internal_token"] == "(set)" && !found.contains("hush"), "{found}");

    for (bad, named) in [
        ("[limits]\nmax_calls = 0\n", "limits.max_calls"),
        ("[limits]\nmax_cals = 7\n", "limits.max_cals"),
        ("[server\n", "ringer.toml"),
        (
            "[rate_limit.routes]\n\"POST /v1/add-agents\" = 3\n",
            "rate_limit.routes: \"POST /v1/add-agents\" is no method and path of `ringer openapi`, did you mean POST /v1/add-agent?",
        ),
        (
            "[phone_numbers]\npool = [\"+14155550100\", \"abc\"]\n",
            "phone_numbers.pool: \"abc\" must be in E.164 format, like +14155550100",
        ),
    ] {
        for more in [&[][..], &["--json"]] {
            let said = check(folder.path(), bad, more).await;
            assert_eq!(said.status.code(), Some(2), "{bad}");
            assert!(text(&said.stderr).contains(named), "{bad}: {}", text(&said.stderr));
            assert_eq!(text(&said.stdout), "", "{bad}");
        }
    }
    let files = "[sip]\ntls_certificate = \"/nowhere/a.pem\"\ntls_key = \"/nowhere/a.key\"\n";
    let said = check(folder.path(), files, &[]).await;
    assert_eq!(said.status.code(), Some(2), "a file that cannot be read");
    let stated = text(&said.stderr);
    assert!(stated.contains("sip.tls_certificate: /nowhere/a.pem: No such file"), "{stated}");
    let absent = folder.path().join("none.toml");
    let mut command = ringer(&["config", "check", "--config", absent.to_str().expect("ASCII")]);
    let said = command.stderr(std::process::Stdio::piped()).output().await.expect("the program was built");
    assert_eq!(said.status.code(), Some(2), "a named file has to be there");
}

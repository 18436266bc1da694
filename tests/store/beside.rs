//! A program that is started on the data of another one.

use std::process::Stdio;

use tokio::time::timeout;

use crate::program::{KEY, PATIENCE, Program, client, up};

/// Returns the status of an answer to `key`.
async fn ask(api: &str, key: &str) -> u16 {
    let answer = client().get(format!("{api}/v1/agents/1")).header("x-api-key", key).send().await;
    answer.expect("it answers").status().as_u16()
}

#[tokio::test]
async fn a_folder_is_of_one_engine_and_its_first_key_stays_the_only_one_that_is_given() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut first = Program::start(&mut up(folder.path()));
    let api = first.address("http://").await;
    let second = timeout(PATIENCE, up(folder.path()).stderr(Stdio::piped()).output()).await;
    let second = second.expect("it ends in time").expect("the program was built");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(1), &b""[..]), "{said}");
    assert!(said.contains("another engine works on the database"), "{said}");
    assert_eq!(ask(&api, KEY).await, 404);
    first.kill().await;
    let mut next = Program::start(up(folder.path()).env("RINGER_BOOTSTRAP_KEY", "a key that comes later"));
    let api = next.address("http://").await;
    assert_eq!((ask(&api, KEY).await, ask(&api, "a key that comes later").await), (404, 401));
    next.kill().await;
}

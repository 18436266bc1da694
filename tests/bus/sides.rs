//! Both sides of the bus do the same.

use std::sync::Arc;
use std::time::Duration;

use ringer::bus::{LiveBus, LocalBus, NatsBus, check};
use ringer::config::{Bus, Secret};
use ringer::tasks::Tasks;
use ringer_base::tls::Roots;

use super::server::Server;
use super::soon;
use crate::program::ringer;

/// Checks what every side does; the values are the sides of two engines.
async fn behaves(one: Arc<dyn LiveBus>, two: Arc<dyn LiveBus>) {
    assert!(one.link().borrow().is_up() && two.link().borrow().is_up());
    let mut all = two.subscribe("t.events.*.1".to_owned()).await;
    let mut exact = two.subscribe("t.events.7.1".to_owned()).await;
    let mut other = two.subscribe("t.events.7".to_owned()).await;
    // The server knows the subscriptions once it answers the same connection.
    let mut own = two.subscribe("t.own".to_owned()).await;
    two.publish("t.own".to_owned(), b"here".to_vec());
    assert_eq!(soon("its own message", own.next()).await.expect("one").bytes, b"here");
    let long = vec![b'x'; 600 << 10];
    for (subject, bytes) in
        [("t.events.7.1", b"a".to_vec()), ("t.events.8.1", long.clone()), ("t.events.7.2", b"c".to_vec())]
    {
        one.publish(subject.to_owned(), bytes);
    }
    one.publish("t.events.7.1".to_owned(), b"d".to_vec());
    one.publish("t.events.7".to_owned(), b"e".to_vec());
    for (subject, bytes) in [("t.events.7.1", b"a".to_vec()), ("t.events.8.1", long), ("t.events.7.1", b"d".to_vec())] {
        let message = soon("a message", all.next()).await.expect("one");
        assert!(message.subject == subject && message.bytes == bytes && message.reply.is_none(), "{subject}");
    }
    for bytes in [b"a", b"d"] {
        assert_eq!(soon("a message", exact.next()).await.expect("one").bytes, bytes);
    }
    assert_eq!(soon("a message", other.next()).await.expect("one").bytes, b"e");
    let answering = async {
        let order = soon("a request", own.next()).await.expect("one");
        order.reply.expect("somebody waits").send([order.bytes, b"!".to_vec()].concat());
    };
    let asking = one.request("t.own".to_owned(), b"well".to_vec(), Duration::from_secs(60));
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!(answer.as_deref(), Some(&b"well!"[..]));
    let nobody = one.request("t.nobody".to_owned(), Vec::new(), Duration::from_secs(60));
    assert_eq!(soon("the notice that nobody listens", nobody).await, None);
    let silent = one.request("t.own".to_owned(), Vec::new(), Duration::from_millis(30)).await;
    assert_eq!(silent, None, "nobody answers in time");
}

#[tokio::test]
async fn messages_inside_a_process() {
    let bus = LocalBus::default();
    behaves(Arc::new(bus.clone()), Arc::new(bus)).await;
}

#[tokio::test]
async fn messages_through_a_server_and_wrong_credentials() {
    let (server, tasks, roots) = (Server::start(), Tasks::new(), Roots::default());
    let settings = server.settings("t");
    let connect = async |settings: &Bus| NatsBus::connect(settings, &roots, "test", &tasks).await;
    let [one, two] = [connect(&settings).await, connect(&settings).await].map(|bus| bus.expect("usable settings"));
    behaves(Arc::new(one), Arc::new(two)).await;
    assert!(check(&settings, &roots).await.expect("it answers").starts_with(|c: char| c.is_ascii_digit()));
    let wrong = "another password that nobody may read";
    let refused = Bus { password: Some(Secret::new(wrong.to_owned())), ..settings.clone() };
    let bus = connect(&refused).await.expect("usable settings");
    let link = bus.link().borrow().clone();
    let why = format!("{link:?}");
    assert!(!link.is_up() && why.contains("refuses the credentials, or asks for some (bus.user and"), "{why}");
    let doctor = doctor(&refused, wrong).await;
    assert!(doctor.contains("refuses the credentials") && !doctor.contains(wrong), "{doctor}");
    let nowhere = Bus { url: vec!["nats://127.0.0.1:9".to_owned()], ..settings.clone() };
    let why = check(&nowhere, &roots).await.expect_err("nobody is there");
    assert!(why.starts_with("the bus at nats://127.0.0.1:9 does not answer: "), "{why}");
    let credentials = Some("/nonexistent/ringer.creds".into());
    let lost = Bus { user: None, password: None, credentials, ..settings };
    let why = connect(&lost).await.map(drop).expect_err("there is no file");
    assert!(why.starts_with("bus.credentials: /nonexistent/ringer.creds: "), "{why}");
    tasks.stop().await;
}

/// Returns what `ringer doctor` says with these settings.
async fn doctor(settings: &Bus, password: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[bus]\nurl = \"{}\"\nuser = \"{}\"\npassword = \"{password}\"\n",
        settings.url[0],
        settings.user.as_deref().unwrap_or_default()
    );
    std::fs::write(folder.path().join("ringer.toml"), text).expect("writable");
    let done = ringer(&["doctor"]).current_dir(folder.path()).output().await.expect("it was built");
    String::from_utf8(done.stdout).expect("text")
}

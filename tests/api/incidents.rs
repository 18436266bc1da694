//! Notifications of the incidents of monitors, and their end.

use ringer::config::{Notify, Secret};
use ringer::model::notification::NoticeStatus;
use serde_json::{Value, json};

use super::monitors::{Call, MINUTE_MS, answer, create, pass, path, read_monitor};
use super::receiver::{Receiver, Relay};
use super::world::World;

/// Checks that every channel was told of the incident, and of its end.
fn check_notices(receiver: &Receiver, relay: &Relay, monitor: &Value) {
    let seen = receiver.requests();
    let at = |path: &str| seen.iter().filter(|one| one.path == path).cloned().collect::<Vec<_>>();
    let pages: Vec<Value> = at("/events").iter().map(|one| one.json()).collect();
    assert_eq!(pages.len(), 2);
    assert_eq!(pages[0]["routing_key"], "routing");
    assert_eq!((&pages[0]["event_action"], &pages[1]["event_action"]), (&json!("trigger"), &json!("resolve")));
    assert_eq!((&pages[0]["dedup_key"], &pages[1]["dedup_key"]), (&monitor["id"], &monitor["id"]));
    let payload = json!({ "summary": "Desk is down", "source": "ringer", "severity": "critical",
        "timestamp": "2026-01-05T09:10:00.000000Z" });
    assert_eq!(pages[0]["payload"], payload);
    let post = &at("/post")[0];
    assert_eq!(post.json()["channel"], "C1");
    assert_eq!(post.headers["authorization"], "Bearer secret");
    let hook = at("/hook")[0].json();
    assert_eq!((&hook["title"], &hook["text"]), (&json!("Desk is down"), &json!("agent_responds: NO_ANSWER: as told")));
    assert_eq!(hook["data"]["monitor_id"], monitor["id"]);
    assert!(at("/hook")[0].headers.get("x-svc-signature").is_none(), "there is no key to sign with");
    let mail = relay.lines();
    for line in [
        "MAIL FROM:<ringer@desk.example>",
        "RCPT TO:<ops@desk.example>",
        "Subject: Desk is down",
        "Subject: Desk has recovered",
    ] {
        assert!(mail.iter().any(|one| one.starts_with(line)), "{line} in {mail:?}");
    }
    assert_eq!(mail.iter().filter(|line| line.starts_with("Subject: Desk is down")).count(), 1);
}

#[tokio::test]
async fn an_incident_is_told_once_and_its_end_once() {
    let (receiver, relay) = (Receiver::new(&[]).await, Relay::new().await);
    let world = World::with_rows_and(|settings| {
        settings.notify = Notify {
            smtp_url: Some(Secret::new(format!("smtp://{}", relay.address))),
            from: Some("ringer@desk.example".into()),
            pager_url: Some(receiver.url("/events")),
            slack_url: receiver.url("/post"),
            slack_token: Some(Secret::new("secret".into())),
            ..Notify::default()
        };
    })
    .await;
    let channels = json!({ "channels": [
        { "type": "webhook", "target": receiver.url("/hook") }, { "type": "pager", "target": "routing" },
        { "type": "slack", "target": "C1" }, { "type": "email", "target": "ops@desk.example" },
    ]});
    let monitor = create(&world, json!({ "notifications": channels })).await;
    world.work_off().await;
    let requests_of = |kind: &str| {
        let at = |path: &str| receiver.requests().into_iter().filter(|one| one.path == path).collect::<Vec<_>>();
        at("/hook").iter().filter(|one| one.json()["kind"] == kind).count()
    };
    for (call, status, down, recovered) in [
        (Call::Says("Hello."), "UP", 0, 0),
        (Call::NoAnswer, "DOWN", 1, 0),
        (Call::Nothing, "DOWN", 1, 0),
        (Call::Fault, "UNKNOWN", 1, 0),
        (Call::Unspoken, "UNKNOWN", 1, 0),
        (Call::NoAnswer, "DOWN", 1, 0),
        (Call::Says("Hello."), "UP", 1, 1),
        (Call::Says("Hello."), "UP", 1, 1),
        (Call::Unspoken, "UNKNOWN", 1, 1),
    ] {
        answer(&world, &monitor, call).await;
        let now = read_monitor(&world, &monitor).await;
        assert_eq!(now["status"], status);
        assert_eq!(now["open_incident"].is_null(), down == recovered, "{status}");
        assert_eq!((requests_of("uptime_down"), requests_of("uptime_recovered")), (down, recovered), "{status}");
        if down > recovered {
            assert_eq!(now["open_incident"]["reason"], "agent_responds: NO_ANSWER: as told");
        }
        pass(&world, 10 * MINUTE_MS).await;
    }
    check_notices(&receiver, &relay, &monitor);
    let uptime = read_monitor(&world, &monitor).await["uptime_percentage"].as_f64().expect("a share");
    assert_eq!(uptime, 50.0, "three of six");
}

#[tokio::test]
async fn a_page_that_comes_too_late_is_not_sent() {
    let receiver = Receiver::new(&[500]).await;
    let world = World::with_rows_and(|settings| {
        settings.notify = Notify { pager_url: Some(receiver.url("/events")), ..Notify::default() };
    })
    .await;
    let channels = json!({ "channels": [{ "type": "pager", "target": "routing" }] });
    let monitor = create(&world, json!({ "notifications": channels })).await;
    world.work_off().await;
    answer(&world, &monitor, Call::NoAnswer).await;
    // The page was refused; when it is tried again its incident is over.
    world.call("DELETE", &path(&monitor), Value::Null).await;
    pass(&world, MINUTE_MS).await;
    let actions: Vec<Value> = receiver.requests().iter().map(|page| page.json()["event_action"].clone()).collect();
    assert_eq!(actions, ["trigger", "resolve"]);
    let subject = monitor["id"].as_str().expect("an id");
    let found =
        world.service.watching().notifications_about(world.name("organization"), subject).await.expect("a list");
    let seen: Vec<_> = found.iter().map(|one| (one.status, one.error.as_deref())).collect();
    assert_eq!(seen, [(NoticeStatus::Sent, None), (NoticeStatus::Failed, Some("there is newer news of it"))]);
}

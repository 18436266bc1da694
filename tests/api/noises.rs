//! Background noises: forms with a file, JSON, and what uses them.

use ringer::api::Setup;
use ringer::config::Retention;
use ringer_base::testing::WebServer;
use ringer_media::clip::write_wav;
use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use super::world::{Answer, World};

const PATH: &str = "/v1/custom-background-noises";

/// Returns a hum of `ms` milliseconds at 8 kHz.
fn wav(ms: i32) -> Vec<u8> {
    let wave = |n: i32| (3000.0 * (f64::from(n) * 0.3).sin()) as i16;
    write_wav(8000, 1, &(0..8 * ms).map(wave).collect::<Vec<_>>())
}

/// Returns a form: each part is its name, its file name, and its bytes.
fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
        body.extend(format!("--cut\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n").into_bytes());
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--cut--\r\n");
    body
}

async fn send(world: &World, kind: &str, body: Vec<u8>) -> Answer {
    world.send("POST", PATH, &[("content-type".to_owned(), kind.to_owned())], body).await
}

async fn upload(world: &World, parts: &[(&str, Option<&str>, &[u8])]) -> Answer {
    send(world, "multipart/form-data; boundary=cut", form(parts)).await
}

/// Keeps a noise of this name for the organization of a key.
pub(super) async fn upload_as(world: &World, key: &str, name: &str) -> Value {
    let form = form(&[("file", Some("hum.wav"), &wav(1000)), ("name", None, name.as_bytes())]);
    let headers = [("x-api-key", key), ("content-type", "multipart/form-data; boundary=cut")];
    world.send("POST", PATH, &headers.map(|(name, value)| (name.to_owned(), value.to_owned())), form).await.json()
}

async fn delete(world: &World, id: &str) -> (u16, Value) {
    let answer = world.send("DELETE", &format!("{PATH}/{id}"), &[], Vec::new()).await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_noise_is_kept_used_and_deleted() {
    let world = World::with_rows().await;
    let made = upload(&world, &[("file", Some("hall.wav"), &wav(1500)), ("name", None, b"Hall")]).await;
    assert_eq!(made.status, 200, "{}", String::from_utf8_lossy(&made.body));
    let made = made.json();
    let id = made["id"].as_str().expect("an id").to_owned();
    let expect = json!({
        "id": id, "organization_id": world.name("organization"), "name": "Hall", "storage_path": format!("noises/{id}"),
        "created_at": "2026-01-05T09:00:00.000000Z", "created_by": made["created_by"], "usage_count": 0,
    });
    assert!(made["created_by"].is_string(), "{made}");
    assert_eq!(made, expect);
    assert_eq!(world.get(PATH).await, json!([expect]));
    let unnamed = upload(&world, &[("file", Some("street.wav"), &wav(1000))]).await.json();
    assert_eq!(unnamed["name"], "street.wav");

    let human = json!({"digital_human": {"background_noise": "custom", "custom_background_noise_url": id}});
    let human = world.post("/v1/create-digital-human", human).await["digital_human"]["id"].clone();
    let renamed = world.call("PATCH", &format!("{PATH}/{id}"), json!({"name": "Large hall"})).await;
    assert_eq!((&renamed["name"], &renamed["usage_count"]), (&json!("Large hall"), &json!(1)));
    assert_eq!(delete(&world, &id).await, (409, json!({"detail": "Background noise is in use"})));
    world.call("DELETE", &format!("/v1/digital-human/{human}"), Value::Null).await;
    let (status, gone) = delete(&world, &id).await;
    assert_eq!((status, &gone["deleted_noise_id"]), (200, &json!(id)));
    assert_eq!(delete(&world, &id).await, (404, json!({"detail": "Background noise not found"})));
    let human = json!({"digital_human": {"background_noise": "custom", "custom_background_noise_url": id}});
    let refused = world.send("POST", "/v1/create-digital-human", &[], human.to_string().into_bytes()).await;
    assert_eq!((refused.status, refused.json()), (404, json!({"detail": "Background noise not found"})));
}

#[tokio::test]
async fn a_noise_may_be_a_copy_or_come_from_the_web() {
    let world = World::with_rows().await;
    let first = upload(&world, &[("file", None, &wav(1200))]).await.json();
    let path = first["storage_path"].as_str().expect("a path");
    for place in [first["id"].as_str().expect("an id"), path] {
        let copy = world.post(PATH, json!({"name": "Copy", "storage_path": place})).await;
        assert_eq!(copy["name"], "Copy");
        assert_ne!(copy["id"], first["id"]);
    }
    let web = WebServer::start(|_| WebServer::file(&wav(1200))).await.expect("loopback has a free port");
    let fetched = world.post(PATH, json!({"name": "Web", "storage_path": web.url("/a.wav")})).await;
    assert_eq!(fetched["name"], "Web");
    assert_eq!(world.get(PATH).await.as_array().map(Vec::len), Some(4));
    let refused = async |body: Value| {
        let answer = world.send("POST", PATH, &[], body.to_string().into_bytes()).await;
        (answer.status, answer.json()["detail"].as_str().unwrap_or_default().to_owned())
    };
    let body = |place: &str| json!({"name": "x", "storage_path": place});
    let missing = (404, "Background noise not found".to_owned());
    assert_eq!(refused(body("9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21")).await, missing);
    assert_eq!(refused(body("../../etc/passwd")).await, missing);
    let (status, why) = refused(body("http://169.254.169.254/x")).await;
    assert_eq!((status, why.as_str()), (400, "storage_path points to a host that is not allowed"));
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let other = world.send("POST", PATH, &foreign, body(path).to_string().into_bytes()).await;
    assert_eq!(other.status, 404, "a noise of another organization");
    let id = first["id"].as_str().expect("an id");
    for (method, text) in [("PATCH", r#"{"name":"x"}"#), ("DELETE", "")] {
        let other = world.send(method, &format!("{PATH}/{id}"), &foreign, text.into()).await;
        assert_eq!((other.status, other.json()), (404, json!({"detail": "Background noise not found"})), "{method}");
    }
}

#[tokio::test]
async fn what_is_no_noise_is_refused() {
    let world = World::with_rows().await;
    let mut large = wav(1500);
    large.resize((20 << 20) + 1, 0);
    let mut half = wav(3000);
    half.truncate(44 + (half.len() - 44) / 2);
    let incomplete = "Audio file could not be decoded: 1.5 s of the audio file were read, the rest was not: the file is not \
                      complete: 1.5 s that it tells of are not in it";
    for (bytes, why) in [
        (b"no audio".to_vec(), "Audio file could not be decoded"),
        (Vec::new(), "Audio file could not be decoded"),
        (half, incomplete),
        (wav(900), "Audio file must be at least 1 second long"),
        (large, "Audio file is larger than 20 MiB"),
    ] {
        let refused = upload(&world, &[("file", Some("a.wav"), &bytes)]).await;
        assert_eq!((refused.status, refused.json()), (400, json!({ "detail": why })));
    }
    let missing = json!([{"type": "missing", "loc": ["body", "file"], "msg": "Field required", "input": null}]);
    for (kind, body) in [
        ("multipart/form-data; boundary=cut", form(&[("name", None, b"x")])),
        ("multipart/form-data; boundary=cut", form(&[])),
        ("text/plain", b"hello".to_vec()),
        ("", wav(1500)),
        ("application/json", Vec::new()),
        ("multipart/form-data", form(&[("file", None, &wav(1500))])),
    ] {
        let refused = send(&world, kind, body).await;
        assert_eq!((refused.status, refused.json()), (422, json!({ "detail": missing })), "{kind}");
    }
    let fields = send(&world, "application/json", b"{\"name\": 5}".to_vec()).await;
    let expect = json!([
        {"type": "string_type", "loc": ["body", "name"], "msg": "Input should be a valid string", "input": 5},
        {"type": "missing", "loc": ["body", "storage_path"], "msg": "Field required", "input": {"name": 5}},
    ]);
    assert_eq!((fields.status, fields.json()), (422, json!({ "detail": expect })));
    let broken = send(&world, "multipart/form-data; boundary=cut", b"--cut\r\nno end".to_vec()).await;
    assert_eq!((broken.status, broken.json()), (400, json!({"detail": "There was an error parsing the body"})));
    let read = [("x-api-key".to_owned(), "$read".to_owned())];
    assert_eq!(world.send("POST", PATH, &read, Vec::new()).await.status, 403);
    assert_eq!(world.get(PATH).await, json!([]), "nothing was kept");
}

#[tokio::test]
async fn a_file_may_be_larger_than_other_bodies() {
    let setup = Setup { max_body_bytes: 1000, max_upload_bytes: 40_000, ..Setup::default() };
    let world = World::with_setup(setup).await;
    assert_eq!(upload(&world, &[("file", None, &wav(1200))]).await.status, 200);
    let refused = upload(&world, &[("file", None, &wav(2600))]).await;
    let why = json!({"detail": "Request body is too large, the limit is 40000 bytes"});
    assert_eq!((refused.status, refused.json()), (413, why));
}

#[tokio::test]
async fn an_upload_that_was_never_taken_is_no_room_that_is_taken() {
    let world = World::new().await;
    let data = &world.service.settings().data;
    let seconds = world.service.clock().now_ms() as u64 / 1000;
    let id = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0));
    let paths = ["call-logs", "noises"].map(|folder| data.join(folder).join(format!("{id}.part")));
    for path in &paths {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, b"sound").expect("a file");
    }
    for (hours, there) in [(0, true), (2, false)] {
        world.service.clock().advance_ms(hours * 3_600_000);
        world.service.runs().clear_old(&Retention::default()).await.expect("the folder can be changed");
        assert_eq!(paths.each_ref().map(|path| path.exists()), [there; 2], "after {hours} hours");
    }
}

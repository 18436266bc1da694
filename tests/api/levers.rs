//! Levers of a Digital Human in languages other than English: what is private, a beginner's words, accents, the words
//! of a caller that makes load.

use std::sync::Arc;

use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::testing::{Reply, ScriptedModel};
use serde_json::{Value, json};

use super::call_logs::body;
use super::receiver::Receiver;
use super::talk::Talk;
use super::world::World;

/// Languages with a caller's words, those of them that are private, and what is left.
const SAID: [(&str, &str, &[&str], &str); 6] = [
    (
        "es",
        "Es el seis uno dos, tres cuatro cinco, nací el tres de marzo de mil novecientos ochenta y ocho.",
        &["seis", "tres", "ochenta"],
        "Es el [NUMBER], nací el [DATE].",
    ),
    (
        "de",
        "Die Nummer ist null eins sieben null, die Adresse anna at beispiel Punkt de.",
        &["sieben", "beispiel"],
        "Die Nummer ist [NUMBER], die Adresse [EMAIL].",
    ),
    ("hi", "मेरा नंबर नौ आठ सात छह पाँच है।", &["सात"], "मेरा नंबर [NUMBER] है।"),
    ("ar", "ولدت في ٣ مارس ١٩٨٨.", &["١٩٨٨"], "ولدت في [DATE]."),
    ("zh", "密码是一二三四，我1988年3月3日出生。", &["三四", "1988"], "密码是[NUMBER]，我[DATE]出生。"),
    ("ko", "제 번호는 공일공 일이삼사 오육칠팔입니다.", &["오육칠팔"], "제 번호는 [PHONE]입니다."),
];

#[tokio::test]
async fn production_calls_lose_what_is_private_in_any_language() {
    let world = World::with_rows().await;
    world.post("/v1/update-agent", json!({ "agent_id": world.name("agent"), "redact_pii": true })).await;
    for (language, said, private, left) in SAID {
        let call = json!({ "transcript": [
            { "start_offset_ms": 2500, "end_offset_ms": 4000, "speaker": "USER", "utterance": said },
        ], "events": [{ "title": "said", "description": said, "start_offset_ms": 2500 }] });
        let queued = world.post("/v1/evaluate", body(&world, call)).await;
        world.work_off().await;
        let id = queued["call_id"].as_str().expect("an id");
        let log = world.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone();
        assert_eq!(log["events"][0]["description"], left, "{language}");
        assert!(!private.iter().any(|word| log.to_string().contains(word)), "{language}: {log}");
    }
}

#[tokio::test]
async fn conversations_lose_what_is_private_in_the_callers_language() {
    let hook = Receiver::new(&[]).await;
    let world = World::at_work(None).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "redact_pii": true });
    let talk = Talk::of(world, agent, json!({}), json!({ "language": "fr", "intent": "Je veux une table." })).await;
    talk.until("READY").await;
    talk.says("Votre code est douze trente-quatre, écrivez à marie point dupont arobase exemple point fr.").await;
    talk.event("message.sent", 1).await;
    let end =
        json!({ "message": "À bientôt, le trois mars mille neuf cent quatre-vingt-huit.", "end_conversation": true });
    assert_eq!(talk.send(end).await.0, 200);
    let result = talk.until("COMPLETED").await;
    let (transcript, timeline) = (talk.part("transcript").await, talk.part("timeline").await);
    for kept in [&result, &transcript, &timeline] {
        let kept = kept.to_string();
        assert!(!["trente", "dupont", "neuf cent"].iter().any(|word| kept.contains(word)), "{kept}");
    }
    assert_eq!(transcript["entries"][0]["utterance"], "Votre code est [NUMBER], écrivez à [EMAIL].");
}

#[tokio::test]
async fn what_no_voice_and_no_list_has_is_told_when_a_digital_human_is_saved() {
    let speech = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let world = World::speaking_by(speech).await;
    let create = async |fields: Value| world.post("/v1/create-digital-human", json!({ "digital_human": fields })).await;
    let starts = |saved: &Value, expect: &[&str]| {
        let warnings: Vec<&str> =
            saved["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fits =
            warnings.len() == expect.len() && warnings.iter().zip(expect).all(|(text, start)| text.starts_with(start));
        assert!(fits, "{warnings:?} instead of {expect:?}");
    };
    let irish = "accent: no voice speaks language en with accent irish, flite:";
    let saved = create(json!({ "accent": "irish" })).await;
    starts(&saved, &[irish]);
    let told = saved["warnings"][0].as_str().expect("a text");
    assert!(told.ends_with("there are: american, american2, mature, british, scottish"), "{told}");
    starts(&create(json!({ "accent": "british", "fluency": "beginner" })).await, &[]);
    let plain = create(json!({})).await;
    starts(&plain, &[]);
    let id = plain["digital_human"]["id"].to_string();
    let update = async |fields: Value| world.call("PUT", &format!("/v1/update-digital-human/{id}"), fields).await;
    let free = "fluency: no list of the most frequent words of language yue";
    starts(&update(json!({ "language": "yue", "fluency": "beginner" })).await, &[free]);
    let both = update(json!({ "accent": "welsh" })).await;
    starts(&both, &[free, "accent: no voice speaks language yue with accent welsh, espeak-ng:yue"]);
    starts(&world.get(&format!("/v1/digital-human/{id}")).await, &[]);
}

#[tokio::test]
async fn a_beginners_rare_words_are_replaced_by_the_model() {
    let hook = Receiver::new(&[]).await;
    // Other words for the rare ones of the first answer; none for those of the second.
    let replies =
        ["Necesito una radiografía.", "Necesito una foto.", "Es una radiografía.", "radiografía", "radiografía"];
    let model = Arc::new(ScriptedModel::new(replies.map(|text| Reply::says(&[text])).into()));
    let world = World::at_work(Some(model.clone())).await;
    let human = json!({ "language": "es", "fluency": "beginner", "intent": "Pide una cita." });
    let talk = Talk::of(world, json!({ "http_webhook": hook.url("/hook") }), json!({}), human).await;
    talk.until("READY").await;
    talk.says("¿Qué necesita?").await;
    assert_eq!(hook.wait_for(1).await.json()["message"], "Necesito una foto.");
    let asked = format!("{:?}", model.requests()[1].messages);
    assert!(asked.contains("Do not use these words: radiografía") && asked.contains("2000 most frequent"), "{asked}");
    talk.event("message.sent", 1).await;
    talk.says("¿Qué es?").await;
    talk.event("rare_words", 1).await;
    talk.event("message.sent", 2).await;
    assert_eq!(model.requests().len(), 5);
}

#[tokio::test]
async fn callers_that_make_load_speak_the_language_of_their_simulation() {
    let world = World::with_rows().await;
    let (agent, simulation) = (world.name("agent"), world.name("simulation"));
    for (language, greeting) in
        [("de", "Hallo, ich habe eine kurze Frage."), ("ja", "もしもし、少しお聞きしたいのですが。")]
    {
        let settings = json!({ "digital_humans_settings": { "default_language": language } });
        world.call("PUT", &format!("/v1/simulation/{simulation}"), settings).await;
        let body = json!({ "agent_id": agent, "simulation_id": simulation, "load_testing": 1 });
        let made = world.post("/v1/generate-digital-humans", body).await;
        let human = &made["digital_humans"][0]["digital_human"];
        assert_eq!(
            (&human["language"], &human["enriched_playback"][1]["exact_message"]),
            (&json!(language), &json!(greeting))
        );
    }
}

//! A model behind servers that misbehave.

use std::sync::Arc;

use serde_json::json;

use super::super::account::{Book, Tokens, Use, counting_model};
use super::super::{ChatMessage, ChatRole, ChatTool, complete};
use super::*;
use crate::testing::{ChatServer, Reply};

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![ChatMessage { role: ChatRole::User, content: "Hello?".into() }],
        tools: vec![ChatTool { name: "end_call", description: "Ends.".into(), parameters: json!({}) }],
        temperature: 0.5,
        ..ChatRequest::default()
    }
}

/// Returns a model that hurries, at a server that answers so.
async fn model(replies: Vec<Reply>, change: impl FnOnce(&mut ChatConfig)) -> (ChatServer, ChatModel) {
    let server = ChatServer::start(replies).await.expect("a loopback port is free");
    let mut config = ChatConfig {
        first_byte: Duration::from_millis(150),
        patient_first_byte: Duration::from_millis(150),
        retry: Retry { first_wait: Duration::from_millis(1), ..Retry::default() },
        ..ChatConfig::new(&server.base_url(), Some("sesame-1234".into()), "m1")
    };
    change(&mut config);
    (server, ChatModel::new(config).expect("TLS is there"))
}

/// Returns the bodies of the requests so far.
fn bodies(server: &ChatServer) -> Vec<Value> {
    let body = |request: &String| {
        let (_, body) = request.split_once("\r\n\r\n").expect("a head and a body");
        serde_json::from_str(body).expect("it is JSON")
    };
    server.requests().iter().map(body).collect()
}

/// Returns all parts of one answer.
async fn parts(model: &ChatModel, asked: &ChatRequest) -> (Vec<ChatPart>, Result<(), Failure>) {
    let (out, mut parts) = mpsc::channel(64);
    let (result, parts) = tokio::join!(model.chat(asked, out), async {
        let mut all = Vec::new();
        while let Some(part) = parts.recv().await {
            all.push(part);
        }
        all
    });
    (parts, result)
}

async fn answer(reply: Reply) -> (Vec<ChatPart>, Result<(), Failure>, Status) {
    let (server, model) = model(vec![reply], |config| config.retry.attempts = 1).await;
    let (parts, result) = parts(&model, &request()).await;
    let seen = server.requests();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].to_lowercase().contains("authorization: bearer sesame-1234"), "{}", seen[0]);
    assert!(seen[0].contains(r#""model":"m1""#) && seen[0].contains(r#""name":"end_call""#), "{}", seen[0]);
    (parts, result, model.status())
}

#[tokio::test]
async fn text_comes_piece_by_piece_and_tools_at_the_end() {
    let (parts, result, status) = answer(Reply::says(&["Good ", "bye."]).calls("end_call", r#"{"a":1}"#)).await;
    assert_eq!(result, Ok(()));
    assert_eq!(status, Status::Ok);
    let tool = ChatPart::Tool { name: "end_call".into(), arguments: r#"{"a":1}"#.into() };
    assert_eq!(parts, [ChatPart::Text("Good ".into()), ChatPart::Text("bye.".into()), tool]);
}

#[tokio::test]
async fn every_trouble_has_its_code_and_shows_no_key() {
    async fn check(reply: Reply, texts: usize, code: &str) {
        let (parts, result, status) = answer(reply).await;
        let failure = result.expect_err("the server misbehaves");
        assert_eq!((failure.code, parts.len()), (code, texts), "{}", failure.message);
        assert!(!failure.message.contains("sesame") && matches!(status, Status::Down(_)));
    }
    check(Reply::says(&["Half a "]).broken_off(), 1, "language_model_failed").await;
    check(Reply::says(&["Half a "]).stall(), 1, "language_model_late").await;
    check(Reply::says(&[]).stall(), 0, "language_model_late").await;
    check(Reply::status(429), 0, "language_model_refused").await;
    check(Reply::drops(), 0, "language_model_failed").await;
    check(Reply::raw("data: {nonsense\n\n"), 0, "language_model_failed").await;
    check(Reply::raw("data: {\"error\":{\"message\":\"no sesame-1234\"}}\n\n"), 0, "language_model_failed").await;
}

#[tokio::test]
async fn a_refusal_is_told_in_the_servers_words() {
    let body = json!({ "error": { "message": "No model m1 for sesame-1234, nor for sesa****1234." } }).to_string();
    let (_, result, status) = answer(Reply::refuses(404, &body)).await;
    let message = "the language model answered 404 Not Found: No model m1 for ***, nor for ***.";
    assert_eq!(result, Err(Failure { code: "language_model_refused", message: message.into() }));
    assert_eq!(status, Status::Down(message.into()));
}

#[tokio::test]
async fn what_may_pass_is_asked_again_unless_somebody_waits_on_the_telephone() {
    let busy = || Reply::status(429).with_header("retry-after: 0");
    let late = || Reply::says(&[]).stall();
    let says = || Reply::says(&["Hi"]);
    for (live, replies, expect, requests) in [
        (false, vec![busy(), Reply::status(503), Reply::drops(), says()], Ok("Hi"), 4),
        (false, vec![Reply::status(529), Reply::status(502), Reply::status(504), says()], Ok("Hi"), 4),
        (
            false,
            vec![Reply::status(503), Reply::status(503), Reply::status(503), Reply::status(503), says()],
            Err("503"),
            4,
        ),
        (false, vec![late(), says()], Ok("Hi"), 2),
        (false, vec![late(), late(), says()], Err("no answer within"), 2),
        (false, vec![Reply::status(429).with_header("retry-after: 3600"), says()], Err("429"), 1),
        (false, vec![Reply::status(401), says()], Err("401"), 1),
        (false, vec![Reply::says(&["Half a "]).broken_off(), says()], Err(""), 1),
        (true, vec![busy(), says()], Ok("Hi"), 2),
        (true, vec![busy(), busy(), says()], Err("429"), 2),
        (true, vec![Reply::status(503).with_header("retry-after: 30"), says()], Err("503"), 1),
        (true, vec![late(), says()], Err("no answer within"), 1),
    ] {
        let (server, model) = model(replies, |_| {}).await;
        let asked = ChatRequest { live, ..request() };
        let said = complete(&model, &asked).await;
        match (&said, expect) {
            (Ok(said), Ok(expect)) => assert_eq!(said, expect),
            (Err(failure), Err(part)) => assert!(failure.message.contains(part), "{}", failure.message),
            _ => panic!("{said:?} instead of {expect:?}"),
        }
        assert_eq!(server.requests().len(), requests, "{said:?} {expect:?}");
    }
}

#[tokio::test]
async fn a_refused_parameter_is_renamed_or_left_out_and_remembered() {
    let refuses = |words: &str| Reply::refuses(400, &json!({ "error": { "message": words } }).to_string());
    let replies = vec![
        refuses("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refuses("Unsupported value: 'temperature' does not support 0.5."),
        Reply::refuses(422, r#"{"detail":[{"loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}"#),
        Reply::says(&["Hi"]),
        Reply::says(&["Hi again"]),
        refuses("The context is full."),
    ];
    let (server, model) = model(replies, |_| {}).await;
    let asked = ChatRequest { tokens_max: 100, seed: Some(7), ..request() };
    for expect in [Ok("Hi"), Ok("Hi again"), Err("the language model answered 400 Bad Request: The context is full.")] {
        let said = complete(&model, &asked).await;
        assert_eq!(said.as_deref().map_err(|failure| failure.message.as_str()), expect);
    }
    let sent: Vec<[bool; 4]> = bodies(&server)
        .iter()
        .map(|body| ["max_tokens", "max_completion_tokens", "temperature", "seed"].map(|name| body.get(name).is_some()))
        .collect();
    let learnt = [false, true, false, false];
    assert_eq!(
        sent,
        [[true, false, true, true], [false, true, true, true], [false, true, false, true], learnt, learnt, learnt]
    );
    assert_eq!(bodies(&server)[4]["max_completion_tokens"], 100);
}

#[tokio::test]
async fn a_parameter_is_not_given_up_when_that_does_not_help() {
    let refuses = || Reply::refuses(400, r#"{"error":"the seed of all trouble"}"#);
    let (server, model) = model(vec![refuses(), refuses(), Reply::says(&["Hi"])], |_| {}).await;
    let asked = ChatRequest { seed: Some(7), ..request() };
    assert!(complete(&model, &asked).await.is_err());
    assert_eq!(complete(&model, &asked).await.as_deref(), Ok("Hi"));
    let seeds: Vec<bool> = bodies(&server).iter().map(|body| body.get("seed").is_some()).collect();
    assert_eq!(seeds, [true, false, true]);
}

#[tokio::test]
async fn servers_that_do_not_stream_are_understood() {
    let body = json!({ "choices": [{ "message": { "content": "<think>Hm.</think>Hi" }, "finish_reason": "stop" }] });
    let (_server, first) = model(vec![Reply::raw(&body.to_string())], |_| {}).await;
    assert_eq!(complete(&first, &request()).await.as_deref(), Ok("Hi"));
    let refuses = Reply::refuses(400, r#"{"error":"streaming is not supported"}"#);
    let (server, second) = model(vec![refuses, Reply::raw(&body.to_string())], |_| {}).await;
    assert_eq!(complete(&second, &request()).await.as_deref(), Ok("Hi"));
    assert_eq!(bodies(&server)[1]["stream"], false);
}

#[tokio::test]
async fn how_a_model_marks_its_reasoning_is_remembered() {
    let (_server, model) = model(vec![Reply::says(&["I greet.", "</think>", "Good ", "day."]); 2], |_| {}).await;
    for _ in 0..2 {
        let (parts, result) = parts(&model, &ChatRequest { live: true, ..request() }).await;
        assert_eq!((parts, result), (["Good ", "day."].map(|text| ChatPart::Text(text.into())).to_vec(), Ok(())));
    }
    assert_eq!(model.learnt().manner, Manner::Unopened);
}

#[tokio::test]
async fn words_of_a_slow_model_are_not_held_back_for_long() {
    const GENEROUS: Duration = Duration::from_secs(60);
    for live in [false, true] {
        let (_server, model) = model(vec![Reply::says(&["Good "]).stall()], |config| {
            (config.first_byte, config.patient_first_byte) = (GENEROUS, GENEROUS);
            (config.held, config.patient_held) = (Duration::from_millis(5), Duration::from_millis(5));
        })
        .await;
        let (asked, (out, mut parts)) = (ChatRequest { live, ..request() }, mpsc::channel(64));
        tokio::select! {
            part = timeout(GENEROUS / 2, parts.recv()) => assert_eq!(part, Ok(Some(ChatPart::Text("Good ".into())))),
            result = model.chat(&asked, out) => panic!("it hangs: {result:?}"),
        }
    }
}

#[tokio::test]
async fn a_base_may_have_a_query_and_tokens_may_be_set() {
    let (server, model) = model(vec![Reply::says(&["Hi"])], |config| {
        config.base_url = format!("{}?api-version=1", config.base_url);
        config.tokens_max = Some(9000);
    })
    .await;
    let asked = ChatRequest { tokens_max: 16, ..request() };
    assert_eq!(complete(&model, &asked).await.as_deref(), Ok("Hi"));
    let seen = server.requests()[0].to_lowercase();
    assert!(seen.starts_with("post /v1/chat/completions?api-version=1 "), "{seen}");
    assert!(seen.contains("\r\napi-key: sesame-1234\r\n"), "{seen}");
    assert_eq!(bodies(&server)[0]["max_tokens"], 9000);
}

#[tokio::test]
async fn tokens_that_went_into_reasoning_are_told() {
    let event = json!({ "choices": [{ "delta": { "reasoning_content": "Hm." }, "finish_reason": "length" }] });
    let (_, result, _) = answer(Reply::raw(&format!("data: {event}\n\ndata: [DONE]\n\n"))).await;
    let message = result.expect_err("there is no word").message;
    assert!(message.contains("finish_reason length") && message.contains("language_model.max_tokens"), "{message}");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let (server, model) = model(vec![], |_| {}).await;
    drop(server);
    for live in [false, true] {
        let failure = complete(&model, &ChatRequest { live, ..request() }).await.expect_err("nobody listens");
        assert_eq!(failure.code, "language_model_unreachable");
    }
}

#[test]
fn events_may_be_cut_anywhere() {
    let text = "event: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"na\u{ef}ve\"}}]}\r\n\r\ndata: [DONE]\n\n";
    for cut in 0..text.len() {
        let (mut answer, mut texts) = (Answer::new(Manner::Plain), Vec::new());
        answer.take(&text.as_bytes()[..cut], &mut texts).expect("valid");
        answer.take(&text.as_bytes()[cut..], &mut texts).expect("valid");
        assert_eq!((texts, answer.is_done()), (vec!["na\u{ef}ve".to_owned()], true), "cut at {cut}");
    }
}

/// Keeps the uses of an account.
#[derive(Default)]
struct Uses(Mutex<Vec<(Option<Tokens>, Option<i64>)>>);

impl Book for Uses {
    fn enter(&self, used: Use) {
        assert_eq!((used.section.as_str(), used.model.as_str()), ("language_model", "m1"));
        self.0.lock().push((used.tokens, used.nano_usd));
    }
}

fn set_prices(config: &mut ChatConfig) {
    let (section, model) = ("language_model".to_owned(), "m1".to_owned());
    config.terms = ModelTerms { section, model, usd_per_million: Some((1.0, 10.0)), ..ModelTerms::default() };
}

#[tokio::test]
async fn the_use_of_each_request_that_its_server_took_is_entered() {
    let event = |more: Value| format!("data: {more}\n\n");
    let said = event(json!({ "choices": [{ "index": 0, "delta": { "content": "Hi" } }] }));
    let told = |tokens: [u64; 2]| {
        event(json!({ "choices": [], "usage": { "prompt_tokens": tokens[0], "completion_tokens": tokens[1] } }))
    };
    let whole =
        json!({ "choices": [{ "message": { "content": "Hi" } }], "usage": { "input_tokens": 7, "output_tokens": 1 } });
    let replies = vec![
        Reply::raw(&(said.clone() + &told([1000, 100]) + "data: [DONE]\n\n")),
        // Some servers tell it with each piece.
        Reply::raw(&(told([1000, 1]) + &said + &told([1000, 2]) + "data: [DONE]\n\n")),
        Reply::raw(&(said + "data: [DONE]\n\n")),
        Reply::raw(&whole.to_string()),
        Reply::says(&["Half"]).broken_off(),
        Reply::refuses(404, "no such model"),
    ];
    let (server, model) = model(replies, set_prices).await;
    let model: Arc<dyn LanguageModel> = Arc::new(model);
    let uses = Arc::new(Uses::default());
    let counted = counting_model(&model, &Arc::new(Account::new(uses.clone())));
    for is_said in [true, true, true, true, false, false] {
        assert_eq!(complete(&*counted, &request()).await.is_ok(), is_said);
    }
    let tokens = |input, output| Some(Tokens { input, output });
    let expect = [
        (tokens(1000, 100), Some(2_000_000)),
        (tokens(1000, 2), Some(1_020_000)),
        (None, None),
        (tokens(7, 1), Some(17_000)),
        (None, None),
    ];
    assert_eq!(*uses.0.lock(), expect);
    assert!(bodies(&server).iter().all(|body| body["stream_options"] == json!({ "include_usage": true })));
}

#[tokio::test]
async fn a_request_that_is_given_up_is_a_use_without_tokens() {
    let (_server, model) = model(vec![Reply::says(&["Hi"]).stall()], |config| {
        set_prices(config);
        config.patient_first_byte = Duration::from_secs(60);
        config.patient_held = Duration::from_millis(5);
        config.first_byte = config.patient_first_byte;
        config.held = config.patient_held;
    })
    .await;
    let model: Arc<dyn LanguageModel> = Arc::new(model);
    let uses = Arc::new(Uses::default());
    let counted = counting_model(&model, &Arc::new(Account::new(uses.clone())));
    let (asked, (out, mut parts)) = (request(), mpsc::channel(4));
    let mut chat = counted.chat(&asked, out);
    tokio::select! {
        _ = &mut chat => panic!("it does not end"),
        part = parts.recv() => assert_eq!(part, Some(ChatPart::Text("Hi".into()))),
    }
    drop(chat);
    assert_eq!(*uses.0.lock(), [(None, None)]);
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_use_is_not_asked_for_it_again() {
    let refuses = |words: &str| Reply::refuses(400, &json!({ "error": { "message": words } }).to_string());
    for words in ["Unknown field: stream_options", "Bad request"] {
        let replies = vec![refuses(words), Reply::says(&["Hi"]), Reply::says(&["Hi"]), refuses("Bad request")];
        let (server, model) = model(replies, |_| {}).await;
        for is_said in [true, true, false] {
            assert_eq!(complete(&model, &request()).await.is_ok(), is_said, "{words}");
        }
        let asked: Vec<bool> = bodies(&server).iter().map(|body| body.get("stream_options").is_some()).collect();
        assert_eq!(asked, [true, false, false, false], "{words}");
    }
}

/// A sum of costs that a test sets.
struct Spent(i64);

impl Spending for Spent {
    fn charge(&self, _: &str, _: i64) {}

    fn cost_today<'a>(&'a self, section: &'a str) -> Job<'a, Option<i64>> {
        assert_eq!(section, "language_model");
        Box::pin(std::future::ready(Some(self.0)))
    }
}

#[tokio::test]
async fn a_used_up_budget_ends_all_but_conversations_that_have_begun() {
    for (spent, goes_on, expect) in [(999, false, true), (1000, false, false), (1000, true, true)] {
        let (server, model) = model(vec![Reply::says(&["Hi"])], |config| {
            set_prices(config);
            config.terms.max_usd_per_day = Some(0.000_001);
            config.terms.spending = Some(Arc::new(Spent(spent)));
        })
        .await;
        let model: Arc<dyn LanguageModel> = Arc::new(model);
        let book = Arc::new(Uses::default());
        let account = Arc::new(if goes_on { Account::of_conversation(book) } else { Account::new(book) });
        let said = complete(&*counting_model(&model, &account), &request()).await;
        assert_eq!((said.is_ok(), server.requests().len()), (expect, usize::from(expect)), "{spent} {goes_on}");
        if let Err(failure) = said {
            assert_eq!(failure.code, "model_budget");
            assert!(failure.message.contains("[language_model] for today is used up: max_usd_per_day = 0.000001"));
        }
        assert_eq!(model.status(), Status::Ok, "the model has no trouble");
    }
}

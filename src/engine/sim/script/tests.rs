//! Tests of how scripts are read.

use ringer_base::config::Refer;
use ringer_transport::sip::transfer::Forwarding;
use ringer_transport::websocket::Kind;

use super::*;

#[test]
fn every_kind_of_line_is_read() {
    let text = "
        # a comment
        caller codecs PCMU g722     # another
        agent says \"Hold # on.\"
        caller quiet
        caller dials proxy
        caller allows 192.0.2.2 192.0.2.3
        caller patience 5
        network delay 40
        until 12.5
        0.1 proxy redirects 302 to sip:agent@192.0.2.2;q=0.5 sip:other@192.0.2.9
        0.3 agent rings
        0.2 agent early_media 183 port 22000
        5 agent holds sendonly music
        6 agent resumes
        7 caller changes port 30000 ptime 40 payload_type 100
        8 network dies
        caller follows 192.0.2.4 *.example.com +49
        caller redirects 192.0.2.2
        9 target refers to sip:a@192.0.2.2 quiet
    ";
    let script = Script::parse("x.txt", text).expect("it is well-formed");
    assert_eq!(script.caller.codecs, [Codec::Pcmu, Codec::G722]);
    assert_eq!(script.agent.says.as_deref(), Some("Hold # on."));
    assert!(script.caller.is_quiet && script.by_proxy && !script.agent.is_quiet);
    assert_eq!(script.caller.allows.as_ref().map(Vec::len), Some(2));
    assert_eq!((script.caller.patience, script.until), (Some(Duration::from_secs(5)), Duration::from_millis(12_500)));
    assert_eq!(script.network_dies, Some(Duration::from_secs(8)));
    let contacts = ["sip:agent@192.0.2.2;q=0.5", "sip:other@192.0.2.9"].map(str::to_owned).to_vec();
    assert_eq!(script.actions[PROXY], [(Duration::from_millis(100), Action::Redirect(302, contacts))]);
    let targets = |list: &[&str]| Targets::parse(&list.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
    let forwarding = Forwarding {
        refer: Refer::Follow,
        refer_targets: targets(&["192.0.2.4", "*.example.com", "+49"]).expect("they are targets"),
        redirects: targets(&["192.0.2.2"]).expect("it is a target"),
    };
    assert_eq!(script.caller.forwarding, forwarding);
    let refer = Action::Refer { to: "sip:a@192.0.2.2".to_owned(), is_quiet: true };
    assert_eq!((&script.actions[TARGET], script.has_target), (&vec![(Duration::from_secs(9), refer)], true));
    let hold = |hold| Action::Change(Change { hold: Some(hold), ..Change::default() });
    let agent: Vec<Action> = script.actions[AGENT].iter().map(|(_, action)| action.clone()).collect();
    let expect = [
        Action::EarlyMedia(183, Some(22_000)),
        Action::Ring(180),
        hold(Hold::SendOnly { music: true }),
        hold(Hold::Off),
    ];
    assert_eq!(agent, expect, "in order of their times");
    let terms = Change { port: Some(30_000), ptime_ms: Some(40), payload_type: Some(100), ..Change::default() };
    assert_eq!(script.actions[CALLER], [(Duration::from_secs(7), Action::Change(terms))]);
}

#[test]
fn lines_about_a_websocket_are_read() {
    let text = "
        websocket vonage_websocket
        caller ignores_claims
        network jitter 30
        network loss 2.5
        1 agent sends '{\"action\":\"clear\"}' count 3
        2 agent sends bytes 600
        3 agent plays 1500
        4 agent says \"It's me.\"
        5 agent marks 'a b'
        6 agent clears
        7 agent closes 1011 \"no more\"
        8 agent drops
        9 agent goes_silent
        10 agent redirects 302
        11 agent hangs_up
        expect caller message received '\"name\":\"a b\"' at 5 +- 0.1 count 1
    ";
    let script = Script::parse("x.txt", text).expect("it is well-formed");
    assert_eq!(script.websocket, Some(Dialect::new(Kind::VonageWebsocket)));
    assert!(script.caller.ignores_claims && !script.agent.ignores_claims);
    assert_eq!((script.jitter_ms, script.loss, script.expectations()), (30.0, 0.025, 1));
    let actions: Vec<Action> = script.actions[AGENT].iter().map(|(_, action)| action.clone()).collect();
    let expect = [
        Action::Socket(SocketAction::Send("{\"action\":\"clear\"}".to_owned(), 3)),
        Action::Socket(SocketAction::SendBytes(600, 1)),
        Action::Socket(SocketAction::Play(1500)),
        Action::Socket(SocketAction::Say("It's me.".to_owned())),
        Action::Socket(SocketAction::Mark("a b".to_owned())),
        Action::Socket(SocketAction::Clear),
        Action::Socket(SocketAction::Close(1011, "no more".to_owned())),
        Action::Socket(SocketAction::Drop),
        Action::Socket(SocketAction::GoSilent),
        Action::Redirect(302, Vec::new()),
        Action::Hangup,
    ];
    assert_eq!(actions, expect);
    let strict = Script::parse("x.txt", "websocket '{\"kind\":\"vonage_websocket\",\"strict\":true}'");
    assert!(strict.expect("it is well-formed").websocket.is_some_and(|dialect| dialect.strict));
}

#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    let check = |line: &str, expect: &str| {
        let why = Script::parse("bad.txt", &format!("# first\n{line}\n")).expect_err(line);
        assert_eq!(why, format!("bad.txt:2: {expect}"), "{line}");
    };
    check(
        "5.0 agent sings",
        "\"sings\" is not the action: it must be one of rings, early_media, stops_media, \
         answers, refuses, redirects, holds, resumes, moves_media, changes, refers, hangs_up, updates, branch, \
         sends, plays, says, marks, clears, closes, drops, goes_silent",
    );
    check(
        "soon agent rings",
        "\"soon\" is not the time (or caller, agent, network, until, expect): it must be a number from 0 to 600",
    );
    check("5.0", "who acts is missing");
    check(
        "601 agent rings",
        "\"601\" is not the time (or caller, agent, network, until, expect): it must be a number from 0 to 600",
    );
    check(
        "nan agent rings",
        "\"nan\" is not the time (or caller, agent, network, until, expect): it must be a number from 0 to 600",
    );
    check("1 agent refuses 200", "\"200\" is not the status code: it must be a whole number from 400 to 699");
    check("1 agent refuses", "the status code is missing");
    check("1 agent rings 180 twice", "\"twice\" is not expected here");
    check("1 agent moves_media 20001", "port 20001 is odd: RTP has an even one");
    check("1 agent changes", "the change is missing");
    check("1 agent changes codec MP3", "\"MP3\" is no codec: it must be one of PCMU, PCMA, G722, L16/8000, L16, OPUS");
    check("1 agent holds inactive music", "music goes with sendonly alone");
    check("1 proxy answers", "this side cannot do that");
    check("1 caller rings", "this side cannot do that");
    check("1 caller refers to sip:a@b", "this side cannot do that");
    check("1 agent refers sip:a@b", "\"sip:a@b\" is where to should be");
    check("caller follows a@b", "\"a@b\" is no host, address, network or prefix of numbers");
    check("agent says \"Hello", "a quotation mark is not closed");
    check("caller allows home", "\"home\" is not an IP address");
    check("caller dials", "proxy is missing");
    check("expect caller event hold between 5 and 4", "the range ends before it begins");
    check(
        "expect caller sings",
        "\"sings\" is not what is expected: it must be one of event, recording, early_media, \
          ended, media, warning, sip, end, message",
    );
    check(
        "expect caller recording agent loud between 1 and 2",
        "\"loud\" is not how it sounds: it must be one of silent, audible, tone",
    );
    check("expect caller recording agent silent", "between A and B, or at T +- D, is missing");
    check("expect sip count of \"INVITE\" 2", "\"2\" is where = should be");
    let why = Script::parse("bad.txt", "caller dials proxy").expect_err("no proxy");
    assert_eq!(why, "bad.txt: the proxy is dialled, and no line says what it does");
    let many = "1 agent rings\n".repeat(MOST_ACTIONS + 1);
    assert_eq!(
        Script::parse("bad.txt", &many),
        Err(format!("bad.txt: the agent has more than {MOST_ACTIONS} timed lines"))
    );
    let long = " ".repeat(MOST_BYTES + 1);
    assert_eq!(Script::parse("bad.txt", &long), Err(format!("bad.txt: it is longer than {MOST_BYTES} bytes")));
}

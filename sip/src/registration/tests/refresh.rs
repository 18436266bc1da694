//! Registrars that are busy or silent, and refreshes that fail.

use super::*;

#[test]
fn a_busy_registrar_says_when_it_is_asked_again() {
    for (value, expect) in [("7", 7), ("120 (maintenance)", 120), ("0", 5), ("999999", 3600)] {
        let mut stage = Stage::registering(silence);
        stage.run(1);
        let request = stage.sent[0].request.clone();
        stage.answer(&hop("192.0.2.1:5060"), &request, 503, &[("Retry-After", value.into())]);
        assert_eq!(stage.standing(), (Standing::Down, Some("the registrar answered 503 Service Unavailable")));
        stage.script = grant;
        stage.run(3700);
        assert_eq!(stage.times(Method::Register)[1], 1 + expect, "{value}");
    }
}

#[test]
fn a_refresh_that_fails_is_tried_again_before_the_end() {
    // Refreshed after 540 s at the most; the last 60 s leave space for more than one attempt.
    let mut stage = Stage::registering(grant);
    stage.run(1);
    stage.script = |_, _, _| Some((503, Vec::new()));
    stage.run(598);
    assert!(stage.times(Method::Register).len() > 3, "{:?}", stage.times(Method::Register));
    assert_eq!(stage.standing().0, Standing::Up);
    stage.run(2);
    assert_eq!(stage.standing(), (Standing::Down, Some("the registrar answered 503 Service Unavailable")));
    // A registrar that is back in time keeps the line up.
    let mut stage = Stage::registering(grant);
    stage.run(1);
    stage.script = |stage, to, request| match stage.times(Method::Register).len() {
        2 => Some((503, Vec::new())),
        _ => grant(stage, to, request),
    };
    stage.run(599);
    assert_eq!((stage.standing().0, stage.times(Method::Register).len()), (Standing::Up, 3));
    // A wait that the registrar asks for is kept, and the end of the registration told.
    let mut stage = Stage::registering(grant);
    stage.run(1);
    stage.script = |_, _, _| Some((503, vec![("Retry-After", "300".into())]));
    stage.run(600);
    assert_eq!((stage.standing().0, stage.times(Method::Register).len()), (Standing::Down, 2));
    // A registrar that falls silent: the line is not up while nobody answers.
    let mut stage = Stage::registering(|_, _, _| Some((200, vec![("Expires", "20".into())])));
    stage.run(1);
    stage.script = silence;
    stage.run(20);
    assert_eq!(stage.standing(), (Standing::Down, Some("the registration ended before it was refreshed")));
}

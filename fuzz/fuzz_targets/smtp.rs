//! Lines of an SMTP client: each gets one answer of known form, and a mail is read only after a sender and a recipient.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_transport::mail::{Command, Session, SessionLimits};

fuzz_target!(|data: &[u8]| {
    let limits = SessionLimits { mail_bytes: 1000, recipients: 3 };
    let mut session = Session::new("mx.example", limits, true);
    let mut taken = 0;
    for line in data.split(|byte| *byte == b'\n') {
        let answer = match session.command(line) {
            Command::Answer(answer) => answer,
            Command::Recipient(address) => {
                assert!(address.contains('@') && !address.contains(['\r', '\n', ' ']), "{address:?}");
                let is_known = !address.starts_with('x');
                let answer = session.recipient(address, Some(is_known));
                taken += usize::from(is_known);
                answer
            }
            Command::Data(answer) => {
                let (_, recipients) = session.take_mail();
                assert!((1..=limits.recipients).contains(&recipients.len()) && recipients.len() <= taken);
                answer
            }
            Command::StartTls(answer) => {
                session.begin_secured();
                answer
            }
            Command::Quit(answer) => answer,
        };
        assert!(answer.as_bytes()[..3].iter().all(u8::is_ascii_digit), "{answer:?}");
    }
});

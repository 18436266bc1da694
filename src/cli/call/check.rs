//! `ringer call --check`: the steps of a call up to the first sound of the agent, each with its time.

use std::process::ExitCode;

use ringer_media::seed::Seed;
use serde_json::json;
use url::Url;

use super::{
    Args, Destination, Equipment, Out, Signals, enter, hint, is_socket, local_address, pipeline, platform, room,
};
use crate::cli::{BAD_USAGE, UNREACHABLE, fail};
use crate::clock::{Clock, random_seed};
use crate::engine::line_check::{self, Checked, Line, RINGING_MS, Reach, STEPS};
use crate::transport::sip::address::Address;

/// Checks the line, and returns the exit code.
pub(super) async fn run(args: &Args, out: &Out) -> ExitCode {
    if args.dialect.is_some() && !is_socket(&args.to) {
        fail("--dialect is for ws:// and wss:// addresses");
        return ExitCode::from(BAD_USAGE);
    }
    let checked = args.rooms.check(room(&args.to).is_some());
    let checked = checked.and_then(|()| args.platforms.check(platform(&args.to).is_some()));
    let line = match checked.and_then(|()| line(&args.to)) {
        Ok(line) => line,
        Err(why) => {
            fail(why);
            return ExitCode::from(BAD_USAGE);
        }
    };
    match check(args, line).await {
        Ok(mut checked) => {
            add_hint(&mut checked, &args.to).await;
            show(&checked, args, out);
            ExitCode::from(match (checked.is_ok(), checked.is_unreachable) {
                (true, _) => 0,
                (false, true) => UNREACHABLE,
                (false, false) => 1,
            })
        }
        Err(why) => fail(why),
    }
}

/// Returns the address as a line that can be checked; `None` where an adapter knows the server.
fn line(to: &str) -> Result<Option<Line>, String> {
    if platform(to).is_some() {
        return Ok(None);
    }
    let server = if is_socket(to) { Some(to) } else { pipeline(to).or_else(|| room(to)) };
    match server {
        Some(server) => Url::parse(server).map(Line::Server).map(Some).map_err(|error| error.to_string()),
        None => Address::parse(to).map(|address| Some(Line::Sip(Box::new(address)))).map_err(|fault| fault.to_string()),
    }
}

async fn check(args: &Args, line: Option<Line>) -> Result<Checked, String> {
    let mut stop = Signals::new()?;
    let (target, new_room) = args.way_into_room()?;
    // Without an address of the other side any local one does: the first step then says what is wrong.
    let listen = match args.listen {
        Some(listen) => listen,
        None => {
            local_address(&args.to).await.unwrap_or_else(|_| std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into())
        }
    };
    let equipment = Equipment::new(args)?;
    let (engine, _incoming) = equipment.engine(listen, args).await?;
    let seed = Seed(args.seed.unwrap_or_else(random_seed));
    let checking = async {
        let mut placement = enter(args, &equipment, seed, None, target, new_room.as_ref()).await?;
        placement.spec.limits.ringing_ms = RINGING_MS;
        let line = match (line, &placement.destination) {
            (Some(line), _) => line,
            (None, Destination::WebSocket(dial)) => {
                Line::Server(Url::parse(&dial.url).map_err(|error| error.to_string())?)
            }
            (None, _) => return Err("the address has no server".to_owned()),
        };
        Ok(line_check::check(&engine, &Clock::Real, &line, &Reach::default(), placement).await.0)
    };
    let checked = tokio::select! {
        checked = checking => checked,
        () = stop.wait() => Err("stopped".to_owned()),
    };
    engine.stop().await;
    if let Some(new_room) = new_room {
        new_room.remove().await?;
    }
    checked
}

/// Adds how to call a room server to a step that failed there.
async fn add_hint(checked: &mut Checked, to: &str) {
    let Some(failed) = checked.steps.last_mut().filter(|step| !step.ok) else { return };
    let Some(status) = failed.code.as_ref().and_then(|code| code.parse().ok()) else { return };
    if let Some(hint) = hint::of_status(to, status).await {
        failed.message = Some(failed.message.iter().fold(hint, |hint, message| format!("{message}; {hint}")));
    }
}

fn show(checked: &Checked, args: &Args, out: &Out) {
    if args.json {
        return out.line(json!({ "event": "check", "to": args.to, "ok": checked.is_ok(), "steps": checked.steps }));
    }
    let width = STEPS.iter().map(|name| name.len()).max().unwrap_or(0);
    for step in &checked.steps {
        let name = step.name.replace('_', " ");
        let message = step.message.as_deref().unwrap_or_default();
        match (&step.code, step.ok) {
            (Some(code), false) => {
                out.line(format_args!("{name:width$}  failed after {} ms: {code}: {message}", step.ms))
            }
            _ => out.line(format_args!("{name:width$}  {:>6} ms  {message}", step.ms).to_string().trim_end()),
        }
    }
}

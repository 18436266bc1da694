//! Registrations at trunks: one engine has each, and another takes it over.

use std::path::Path;

use ringer::clock::Clock;
use ringer::config::Config;
use ringer::engine::Standing;

use super::outages::beside;
use super::proxy::Proxy;
use crate::calls::house::House;
use crate::calls::registration::comes_true;
use crate::peers::registrar::{PASSWORD, Registrar, USER};

/// Length of a lease.
const LEASE_MS: i64 = 3000;

/// Returns an engine with a trunk at a registrar.
async fn engine(name: &str, proxy: &Proxy, schema: &str, settings: &str) -> House {
    let read = Config::from_texts(Some((Path::new("ringer.toml"), settings)), &Default::default(), &[], 4096);
    let trunks = read.expect("good settings").sip.trunks;
    let house = House::sharing(proxy.location(schema), Clock::correctable(), 4, |settings| {
        (settings.engine, settings.lease_ms, settings.trunks) = (name.to_owned(), LEASE_MS, trunks.clone().into());
    });
    let house = house.await;
    house.engine.register_lines(Default::default()).await;
    house.engine.keep_lines(&trunks, &format!("urn:uuid:00000000-0000-1000-8000-{:0>12}", name.len())).await;
    house
}

/// True if an engine is registered.
fn is_registered(house: &House) -> bool {
    let lines = house.engine.lines().reports();
    let registration = lines.first().and_then(|line| line.registration.as_ref());
    registration.is_some_and(|line| line.standing == Standing::Up)
}

#[test]
fn a_registration_is_taken_over_from_an_engine_that_drains_or_is_gone() {
    beside(async |folder, schema| {
        let registrar = Registrar::new("MD5").start();
        let (host, port) = (registrar.sip.ip(), registrar.sip.port());
        let settings = format!(
            "[sip.trunks.near]\nhost = '{host}'\nport = {port}\nusername = '{USER}'\npassword = '{PASSWORD}'\n\
             register = true\nkeepalive_s = 1\nallowed_prefixes = ['+1']\n"
        );
        let ways = [Proxy::start(folder.clone()).await, Proxy::start(folder).await];
        let first = engine("a", &ways[0], schema, &settings).await;
        comes_true("the first is registered", || is_registered(&first)).await;
        let second = engine("bb", &ways[1], schema, &settings).await;
        let answers = |house: &House| house.engine.lines().reports().iter().any(|line| line.keepalive.is_some());
        comes_true("the second knows the trunk", || answers(&second)).await;
        assert!(is_registered(&first) && !is_registered(&second), "one has it");
        second.service.engines().set_draining("a", true).await.expect("it works");
        comes_true("the second takes it over", || is_registered(&second) && !is_registered(&first)).await;
        registrar.wait_for(";expires=0 authorization");
        second.service.engines().set_draining("a", false).await.expect("it works");
        // The second is cut off from the database, as if it were gone.
        ways[1].sever();
        comes_true("the first takes it back", || is_registered(&first)).await;
        ways[1].mend();
        comes_true("the second sees that", || !is_registered(&second)).await;
        tokio::join!(first.stop(), second.stop());
    });
}

//! Credentials of platforms that suites name: they are stored before the agents are made.

use serde_json::{Map, Value};

use crate::suite::expand::Connect;
use crate::transport::websocket::platform::secrets::add_texts;

/// Returns the credentials that a connection names, by their names in the API.
pub(crate) fn credentials(connect: &Connect) -> Option<&Map<String, Value>> {
    match connect {
        Connect::Made(made) if !made.integration.is_empty() => Some(&made.integration),
        _ => None,
    }
}

/// Returns the texts of credentials, which nobody is to read.
pub(crate) fn secrets(connect: &Connect) -> Vec<String> {
    let mut found = Vec::new();
    credentials(connect).into_iter().flatten().for_each(|(_, value)| add_texts(value, &mut found));
    found.retain(|text| !text.is_empty());
    found
}

/// Returns the reason why the credentials of a connection cannot be used: an organization has one set for all suites
/// of a run. `others`: file and connection of each suite before.
pub(crate) fn problem<'a>(
    mut others: impl Iterator<Item = (&'a str, &'a Connect)>,
    connect: &Connect,
) -> Option<String> {
    let (Connect::Made(made), Some(own)) = (connect, credentials(connect)) else { return None };
    let (name, file) = others.find_map(|(file, other)| {
        let known = credentials(other)?;
        let is_other = |(name, value): &(&String, &Value)| known.get(*name).is_some_and(|other| other != *value);
        Some((own.iter().find(is_other)?.0, file))
    })?;
    Some(format!("{}: {name} is another one in {file}: run the files one by one", made.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::expand::connect;
    use crate::suite::yaml::parse;

    fn connection(text: &str) -> Connect {
        connect(&parse(text, "f").expect("it is read")).expect("it is good")
    }

    #[test]
    fn a_run_has_one_set_of_credentials() {
        let known = [connection("{platform: P4, agent: a, P4_api_key: one}"), connection("{sip: 'sip:a@127.0.0.1'}")];
        for (text, expect) in [
            ("{platform: P4, agent: b, P4_api_key: one}", None),
            ("{platform: P3, agent: b, P3_api_key: two}", None),
            ("{platform: P4, P4_agent_id: b}", None),
            ("{platform: P4, agent: b}", None),
            ("{platform: P4, agent: b, P4_api_key: two}", Some("f:1:1: P4_api_key is another one in f")),
        ] {
            let told = problem(known.iter().map(|known| ("f", known)), &connection(text));
            assert_eq!(told.is_some(), expect.is_some(), "{text}: {told:?}");
            assert!(told.as_deref().unwrap_or_default().starts_with(expect.unwrap_or_default()), "{text}: {told:?}");
        }
        assert_eq!(
            secrets(&connection("{platform: P6, agent: a, P6_credentials: {a: x, b: {c: [y, z]}}}")),
            ["x", "y", "z"]
        );
    }
}

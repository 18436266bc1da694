//! Texts of the files that `ringer init` writes.

use std::path::{Path, PathBuf};

use super::{Ci, Kind};

/// An agent as a first suite calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agent {
    /// Kind of agent that is called.
    pub kind: Kind,
    /// Address of the agent; empty for the sample agent.
    pub address: String,
    /// Model that a chat-completions server is asked by.
    pub model: Option<String>,
}

/// Address at which the sample agent of a first suite listens, by UDP and TCP.
const SAMPLE: &str = "127.0.0.1:5080";

/// Returns the text of a first suite: two callers of a voice agent, one of an agent that writes.
pub(super) fn suite_file(agent: &Agent) -> String {
    let mut text = String::from(
        "# First calls to the agent. `ringer run --schema` prints the words of such files, `ringer run --metrics` what an\n\
         # expectation may name. A goal in a caller's own words is spoken sentence by sentence; with [language_model] in\n\
         # ringer.toml callers choose their words, and success in words is judged.\n\
         version: 1\n",
    );
    text.push_str(&connect(agent));
    if agent.kind.is_written() {
        text.push_str(WRITTEN);
    } else {
        text.push_str(SPOKEN);
    }
    text
}

/// Scenarios of an agent that speaks.
const SPOKEN: &str = "defaults: { language: en, max_seconds: 90 }
scenarios:
  - name: asks a question
    tags: [smoke]
    goal: Hello. What can you do for me?
    expect:
      - { metric: p95_agent_latency, at_most: 2.5 }   # seconds from the caller's last sound to the agent's first
      - { metric: time_to_first_agent_utterance, at_most: 5 }
  - name: cuts in
    turns:
      - interrupt: { after_ms: 1500, say: \"Excuse me, I have one question for you.\" }
      - expect: { within_ms: 6000 }
";

/// Scenarios of an agent that writes.
const WRITTEN: &str = "defaults: { language: en, max_seconds: 90 }
scenarios:
  - name: asks a question
    tags: [smoke]
    goal: Hello. What can you do for me?
    expect:
      - { metric: num_turns, at_least: 1 }
";

/// Returns the lines of a suite that tell how the agent is reached, and how the sample agent is started.
fn connect(agent: &Agent) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    if agent.kind == Kind::Sample {
        let program = quoted(&own_program());
        return format!(
            "connect: {{ sip: \"sip:desk@{SAMPLE}\" }}\n\
             spawn:\n  command: [{program}, agent, --listen, \"udp:{SAMPLE},tcp:{SAMPLE}\"]\n  \
             ready: {{ tcp: \"{SAMPLE}\", within_s: 30 }}\n"
        );
    }
    let address = format!("{}: {}", agent.kind.word(), quoted(&agent.address));
    match &agent.model {
        Some(model) => format!("connect: {{ {address}, model: {} }}\n", quoted(model)),
        None => format!("connect: {{ {address} }}\n"),
    }
}

/// Returns `ringer` where a shell finds it by its name, else the path of this program.
fn own_program() -> String {
    let own = std::env::current_exe().ok();
    let path = crate::config::variable("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|folder| folder.join("ringer").is_file());
    match own {
        Some(own) if !is_found => own.to_string_lossy().into_owned(),
        _ => "ringer".to_owned(),
    }
}

/// Returns path and text of the file of a build server that runs the suites of a folder; `None`: there is none.
pub(super) fn ci_file(ci: Ci, folder: &Path) -> Option<(PathBuf, String)> {
    let folder = folder.display();
    match ci {
        Ci::None => None,
        Ci::Github => Some((
            PathBuf::from(".github/workflows/ringer.yml"),
            format!(
                "name: Calls to the agent\n\
                 on: [pull_request]\n\
                 permissions: {{ contents: read }}\n\
                 jobs:\n  calls:\n    runs-on: ubuntu-24.04\n    timeout-minutes: 30\n    steps:\n      \
                 - uses: actions/checkout@v4\n      \
                 - run: pipx install ringer-engine\n      \
                 # Start the agent here, unless it runs elsewhere.\n      \
                 - run: ringer run {folder}\n      \
                 - uses: actions/upload-artifact@v4\n        if: always()\n        \
                 with: {{ name: ringer-results, path: ringer-results }}\n"
            ),
        )),
        Ci::Gitlab => Some((
            PathBuf::from(".gitlab-ci.yml"),
            format!(
                "calls:\n  image: python:3.12-bookworm\n  script:\n    - pip install ringer-engine\n    \
                 # Start the agent here, unless it runs elsewhere.\n    - ringer run {folder}\n  \
                 artifacts: {{ when: always, paths: [ringer-results], reports: {{ junit: ringer-results/junit.xml }} }}\n"
            ),
        )),
    }
}

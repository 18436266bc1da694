//! Kinds of failures of calls to voice pipelines and media rooms. The error codes of results that they lead to are not
//! known here.

/// Declares the kinds with the names by which an end of a call holds them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal),+ $(,)?) => {
        /// Kind of a failure of a call to a voice pipeline or a media room.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum FaultKind {
            $($(#[$doc])* $kind,)+
        }

        impl FaultKind {
            /// Every kind, in declared order.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$kind),+];

            /// Returns the name by which `EndDetail::Pipeline` holds the kind.
            pub fn as_str(self) -> &'static str {
                match self { $(FaultKind::$kind => $name),+ }
            }

            /// Returns the kind of a name; `None` for other texts.
            pub fn parse(name: &str) -> Option<FaultKind> {
                FaultKind::ALL.iter().copied().find(|kind| kind.as_str() == name)
            }
        }
    };
}

kinds! {
    /// The room server refused the token or the key.
    RoomAuth = "room_auth",
    /// The room of a call could not be opened, or its token was not handed out.
    RoomSetup = "room_setup",
    /// The room could not be joined, or no media came to flow in it.
    RoomConnect = "room_connect",
    /// The room server reports that the agent failed.
    RoomAgent = "room_agent",
    /// No agent with audio came into the room in time.
    RoomNoAgent = "room_no_agent",
    /// The connection to the room was lost during the call.
    RoomLost = "room_lost",
    /// The pipeline refused the key.
    PipelineAuth = "pipeline_auth",
    /// The request that starts the pipeline failed.
    PipelineSetup = "pipeline_setup",
    /// The connection to the pipeline failed, before the call or during it.
    PipelineConnect = "pipeline_connect",
    /// The pipeline reported an error that ended it.
    PipelineAgent = "pipeline_agent",
    /// The pipeline handed out a media room that cannot be joined.
    PipelineRoom = "pipeline_room",
    /// The channel of the agent's events was lost, and the call went on without it.
    Events = "events",
    /// The other side takes no further call at present (HTTP status 429).
    Busy = "busy",
    /// A failure of this side before the call was up.
    OwnBeforeCall = "own_before_call",
    /// A failure of this side during the call.
    OwnInCall = "own_in_call",
}

/// Kind of a failure of a call to an agent on a platform, whose name stands before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AdapterFault {
    /// The platform refused the credentials.
    Auth,
    /// No session came about.
    Setup,
    /// The connection to the session did not come about.
    Connect,
    /// The agent did not begin to speak.
    Start,
    /// The platform told of an error that ended the call.
    Agent,
    /// The channel of the platform's events was lost.
    Events,
    /// The platform ended the session by a limit of its own.
    Limit,
}

impl AdapterFault {
    /// Every kind, in declared order.
    pub const ALL: [AdapterFault; 7] = [
        AdapterFault::Auth,
        AdapterFault::Setup,
        AdapterFault::Connect,
        AdapterFault::Start,
        AdapterFault::Agent,
        AdapterFault::Events,
        AdapterFault::Limit,
    ];

    /// Returns the word by which `EndDetail::Pipeline` holds the kind, behind the name of the platform.
    pub fn as_str(self) -> &'static str {
        match self {
            AdapterFault::Auth => "auth",
            AdapterFault::Setup => "setup",
            AdapterFault::Connect => "connect",
            AdapterFault::Start => "start",
            AdapterFault::Agent => "agent",
            AdapterFault::Events => "events",
            AdapterFault::Limit => "limit",
        }
    }

    /// Returns the platform and the kind of an end's text, such as `P4 auth`; `None` for other texts.
    pub fn parse(text: &str) -> Option<(&str, AdapterFault)> {
        let (platform, word) = text.split_once(' ')?;
        AdapterFault::ALL.into_iter().find(|kind| kind.as_str() == word).map(|kind| (platform, kind))
    }
}

impl FaultKind {
    /// Returns the name by which an end holds the kind: where the agent is on a platform, that of the platform's
    /// failure. `is_up`: the call was up.
    pub fn name_at(self, platform: Option<&str>, is_up: bool) -> String {
        let Some(platform) = platform else { return self.as_str().to_owned() };
        let fault = match self {
            FaultKind::RoomAuth | FaultKind::PipelineAuth => AdapterFault::Auth,
            FaultKind::RoomSetup | FaultKind::PipelineSetup => AdapterFault::Setup,
            FaultKind::PipelineConnect if is_up => return FaultKind::RoomLost.as_str().to_owned(),
            FaultKind::RoomConnect | FaultKind::PipelineConnect => AdapterFault::Connect,
            FaultKind::RoomAgent | FaultKind::PipelineAgent => AdapterFault::Agent,
            FaultKind::Events => AdapterFault::Events,
            _ => return self.as_str().to_owned(),
        };
        format!("{platform} {}", fault.as_str())
    }
}

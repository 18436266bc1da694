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
    /// The other side takes no further call at present (HTTP status 429).
    Busy = "busy",
    /// A failure of this side before the call was up.
    OwnBeforeCall = "own_before_call",
    /// A failure of this side during the call.
    OwnInCall = "own_in_call",
}

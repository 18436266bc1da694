//! Agents that speak another dialect than the one of the call.

use super::*;

#[test]
fn an_agent_of_another_dialect_is_told() {
    let loud_frame = loud(640);
    for (spoken, expected, expect) in [
        (
            Kind::TwilioMediaStreams,
            Kind::Default,
            "1 message refused, INVALID_MESSAGE; does the agent speak the dialect default? no message held audio of it",
        ),
        (
            Kind::Default,
            Kind::TwilioMediaStreams,
            "1 message refused, BINARY_NOT_ALLOWED; does the agent speak the dialect twilio_media_streams? no message held audio of it",
        ),
        (
            Kind::TelnyxMediaStreaming,
            Kind::PipecatProtobuf,
            "does the agent speak the dialect pipecat_protobuf? no message held audio of it",
        ),
        (
            Kind::Default,
            Kind::PipecatProtobuf,
            "1 message refused, MISSING_FIELD; does the agent speak the dialect pipecat_protobuf? no message held audio of it",
        ),
        (
            Kind::PipecatProtobuf,
            Kind::Default,
            "does the agent speak the dialect default? its binary messages are frames of pipecat_protobuf",
        ),
    ] {
        let speaker = Rig::on(spoken);
        let message = agent_audio_of(spoken, &speaker, &loud_frame);
        let mut rig = Rig::on(expected);
        rig.receive(message);
        assert_eq!(rig.port.refused_warning().as_deref(), Some(expect), "{spoken:?} on {expected:?}");
        let mut rig = Rig::on(spoken);
        let message = agent_audio_of(spoken, &rig, &loud_frame);
        rig.receive(message);
        assert_eq!(rig.port.refused_warning(), None);
    }
}

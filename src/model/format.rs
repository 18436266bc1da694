//! Formats that a caller can ask for, as words of a query.

words! {
    /// Forms of a run: a row for each result, the run and its results as they are read, or a test case for each result.
    ExportFormat { Csv = "csv", Json = "json", Junit = "junit" } default Csv
}

words! {
    /// Formats of a transcript.
    ScriptFormat { Json = "json", Text = "text", Vtt = "vtt" } default Json
}

words! {
    /// Channels of a recording.
    Channel { Human = "0", Agent = "1", Both = "both", Mix = "mix", CallerClean = "caller_clean" } default Both
}

words! {
    /// Formats of a recording.
    AudioFormat { Wav = "wav", Flac = "flac", Opus = "opus" } default Wav
}

words! {
    /// Formats of the steps of a waveform.
    StepFormat { Json = "json", Bytes = "i8" } default Json
}

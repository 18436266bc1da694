//! Formats that a caller can ask for, as words of a query.

words! {
    /// Forms of a run: rows as a table, as one JSON object, as a JSON object a line, or by columns; JUnit has a test
    /// case for each result.
    ExportFormat {
        Csv = "csv", Json = "json", Junit = "junit", Parquet = "parquet", Jsonl = "jsonl",
    } default Csv
}

words! {
    /// Rows of an exported run: its results, or the turns of all its conversations.
    ExportRows { Results = "results", Turns = "turns" } default Results
}

words! {
    /// Formats of a transcript.
    ScriptFormat {
        Json = "json", Text = "text", Vtt = "vtt", Rttm = "rttm", TextGrid = "textgrid",
    } default Json
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

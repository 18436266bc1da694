//! Lists of codecs: read by their names, and shown so.

use ringer_media::codec::Codec;
use serde::Serializer;

use super::Source;

/// Reads a list of names of codecs, of which at least one is needed.
pub(super) fn read_codecs(key: &str, into: &mut Vec<Codec>, from: &mut Source) {
    let mut codecs: Vec<String> = into.iter().map(|codec| codec.name().to_owned()).collect();
    from.list(key, &mut codecs);
    match codecs.iter().map(|name| Codec::from_name(name).ok_or(name)).collect::<Result<Vec<_>, _>>() {
        Ok(read) if !read.is_empty() => *into = read,
        Ok(_) => from.refuse(format!("{key}: at least one is needed")),
        Err(name) => {
            let known = Codec::ALL.map(Codec::name).join(", ");
            from.refuse(format!("{key}: {name:?} is not one of {known}"));
        }
    }
}

/// Shows codecs by their names.
pub(super) fn codec_names<S: Serializer>(codecs: &[Codec], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(codecs.iter().map(|codec| codec.name()))
}

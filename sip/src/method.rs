//! Methods of requests (RFC 3261 and its extensions).

use std::fmt;

macro_rules! methods {
    ($($name:ident $text:literal)*) => {
        /// A method (RFC 3261 and its extensions).
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = $text] $name,)*
            /// A method that this library has no name for.
            Other(String),
        }

        impl Method {
            /// Returns the name of the method as it is sent.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Method::$name => $text,)*
                    Method::Other(name) => name,
                }
            }

            /// Returns the method of this name; `Other` for one that is unknown.
            pub fn parse(text: &str) -> Method {
                match text {
                    $($text => Method::$name,)*
                    other => Method::Other(other.to_owned()),
                }
            }
        }
    };
}

methods! {
    Invite "INVITE" Ack "ACK" Bye "BYE" Cancel "CANCEL" Options "OPTIONS" Info "INFO" Update "UPDATE" Refer "REFER"
    Notify "NOTIFY" Message "MESSAGE" Register "REGISTER" Prack "PRACK" Subscribe "SUBSCRIBE" Publish "PUBLISH"
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

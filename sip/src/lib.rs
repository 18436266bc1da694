//! Sans-IO SIP.

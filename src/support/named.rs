//! Enums whose variants have names, as on the wire: each name is written beside its variant.

/// Defines an enum, and `as_str` for the names of its variants.
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        $visible:vis enum $name:ident {
            $($(#[$detail:meta])* $variant:ident = $text:expr,)*
        }
    ) => {
        $(#[$about])*
        $visible enum $name {
            $($(#[$detail])* $variant,)*
        }

        impl $name {
            /// Its name.
            $visible fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

pub(crate) use named_enum;

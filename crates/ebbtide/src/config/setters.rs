//! The form of the methods that set one setting each.

/// Defines methods of a group of settings. Each has one argument, gives new values to one or more places in
/// [`AllSettings`](super::AllSettings), and returns the group:
/// `name(argument: Type) => place = value, place = value;`.
macro_rules! setters {
    (
        $(#[$about:meta])*
        $group:ident {
            $(
                $(#[$meta:meta])*
                $name:ident($argument:ident: $type:ty) => $($($place:ident).+ = $value:expr),+;
            )+
        }
    ) => {
        $(#[$about])*
        impl $group {
            $(
                $(#[$meta])*
                pub fn $name(mut self, $argument: $type) -> Self {
                    $(self.0.$($place).+ = $value;)+
                    self
                }
            )+
        }
    };
}

pub(super) use setters;

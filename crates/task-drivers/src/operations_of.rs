//! Operations on tasks that a driver leaves to the part of it that runs their processes.

/// Methods of [`crate::Driver`] that the driver's field `$field`, a driver itself, carries out.
macro_rules! operations_of {
    ($field:ident) => {
        fn recover(
            &self,
            config: $crate::TaskConfig,
            started_at: ::model::Timestamp,
            now: ::model::Timestamp,
        ) -> $crate::BoxFuture<'_, $crate::Recovery> {
            self.$field.recover(config, started_at, now)
        }

        fn wait<'a>(
            &'a self,
            id: &'a $crate::TaskId,
            messages: &'a $crate::Messages,
        ) -> $crate::BoxFuture<'a, Result<::model::ExitResult, $crate::DriverError>> {
            self.$field.wait(id, messages)
        }

        fn signal<'a>(
            &'a self,
            id: &'a $crate::TaskId,
            signal: &'a str,
        ) -> $crate::BoxFuture<'a, Result<(), $crate::DriverError>> {
            self.$field.signal(id, signal)
        }

        fn forget<'a>(
            &'a self,
            id: &'a $crate::TaskId,
        ) -> $crate::BoxFuture<'a, Result<(), $crate::DriverError>> {
            self.$field.forget(id)
        }

        fn read_usage(&self) -> $crate::BoxFuture<'_, ()> {
            self.$field.read_usage()
        }

        fn usage(&self, id: &$crate::TaskId) -> Option<$crate::Usage> {
            self.$field.usage(id)
        }

        fn leftovers(&self) -> Vec<$crate::TaskId> {
            self.$field.leftovers()
        }

        fn leftovers_of(&self, alloc_id: ::model::AllocId) -> Vec<$crate::TaskId> {
            self.$field.leftovers_of(alloc_id)
        }
    };
}

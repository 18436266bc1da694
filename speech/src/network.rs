//! A loaded network and the threads that run it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::Unusable;

/// A network that makes sound. Shared by threads.
pub(crate) struct Network {
    model: Model,
    /// Thread pools of one thread each that are not in use, with the scheduling policy of their threads.
    idle: Mutex<Vec<(libc::c_int, Arc<ThreadPool>)>>,
}

impl Network {
    /// Loads the network of these bytes of a file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn load(file: Vec<u8>) -> Result<Network, Unusable> {
        // The runtime's reader is another's: what it does not foresee must not end this process.
        let load = || ModelOptions::with_all_ops().prepack_weights(true).load(file);
        match catch_unwind(AssertUnwindSafe(load)) {
            Ok(Ok(model)) => Ok(Network { model, idle: Mutex::default() }),
            Ok(Err(cause)) => Err(Unusable(format!("the network cannot be used: {cause}"))),
            Err(_) => Err(Unusable("the network cannot be used: it is broken".to_owned())),
        }
    }

    /// Returns the input or output of this name.
    pub(crate) fn find(&self, name: &str) -> Option<NodeId> {
        self.model.find_node(name)
    }

    /// Returns the values of an output. Works on one thread that is not the caller's, under the caller's scheduling
    /// policy: a thread that steps back behind others has no thread do its work that does not, and the reverse.
    ///
    /// # Errors
    /// Says what did not work.
    pub(crate) fn run(&self, inputs: Vec<(NodeId, ValueOrView<'_>)>, output: NodeId) -> Result<Vec<f32>, Unusable> {
        let policy = policy();
        let pool = {
            let mut idle = self.idle.lock();
            let at = idle.iter().rposition(|(known, _)| *known == policy);
            at.map(|at| idle.swap_remove(at).1)
        };
        // A new thread takes the policy of the one that makes it.
        let pool = pool.unwrap_or_else(|| Arc::new(ThreadPool::with_num_threads(1)));
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        let run = || self.model.run_n(inputs, [output], Some(options));
        let ran = catch_unwind(AssertUnwindSafe(run)).map_err(|_| Unusable("its network is broken".to_owned()))?;
        self.idle.lock().push((policy, pool));
        let [made] = ran.map_err(|cause| Unusable(cause.to_string()))?;
        let made: Tensor<f32> = made.try_into().map_err(|_| Unusable("its output is no sound".to_owned()))?;
        Ok(made.to_vec())
    }
}

/// Returns the scheduling policy of this thread (sched(7)).
fn policy() -> libc::c_int {
    // SAFETY: a plain system call; 0 is this thread.
    unsafe { libc::sched_getscheduler(0) }
}

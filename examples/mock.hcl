# A task without a process: for experiments, and for tests of the cluster itself.

job "mock" {
  type = "batch"

  group "pretend" {
    count = 3

    # No replacement after a failure.
    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "pretend" {
      driver = "mock_driver"

      config {
        # Duration, output and exit code of the simulated run.
        run_for       = "500ms"
        stdout_string = "pretending to work\n"
        exit_code     = 0
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}

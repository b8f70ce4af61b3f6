# A task that fails twice and then succeeds, with a restart policy.

job "restart" {
  type = "batch"

  group "flaky" {
    # A failed task is restarted on the same node, at most "attempts" times within "interval", after
    # "delay" (plus up to a quarter as jitter). After that the allocation fails and is rescheduled.
    restart {
      attempts = 3
      interval = "5m"
      delay    = "1s"
      mode     = "fail"
    }

    task "third-time-lucky" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"

        # The allocation's directory survives restarts, so the task can count its runs in it.
        args = ["-c", <<-EOT
          state="${NOMAD_ALLOC_DIR}/runs"
          runs=$(( $(cat "$state" 2> /dev/null || echo 0) + 1 ))
          echo "$runs" > "$state"
          if [ "$runs" -lt 3 ]; then
            echo "run $runs fails"
            exit 1
          fi
          echo "run $runs succeeds"
        EOT
        ]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}

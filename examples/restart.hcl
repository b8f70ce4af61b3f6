# A task that fails twice and then succeeds: what the restart policy is for.

job "restart" {
  type = "batch"

  group "flaky" {
    # A task that fails is started again on the same machine, at most "attempts" times within
    # "interval", with a pause of "delay" (and up to a quarter more, so that many do not start at
    # once). After that the allocation has failed and is placed again elsewhere.
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

        # The allocation's directory outlives restarts, so the task can count its runs in it.
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

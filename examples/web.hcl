# A small web server: the first job to try.
#
#   kafila job run web.hcl          start or update it
#   kafila job status web           its nodes, and the id of its allocation
#   kafila alloc status ID          its port and its latest events
#   kafila job stop web             stop it

job "web" {
  # A service runs until it is stopped: when its task ends, it is restarted.
  # ("service" is the default; "batch" jobs run to completion.)
  type = "service"

  # A group is placed on one node as a unit; its tasks share ports and files.
  group "server" {
    # Number of allocations. Change it and run the job again to scale.
    count = 1

    network {
      # A free port of the node, chosen by the scheduler.
      # The task reads its number from NOMAD_PORT_http, and the address from NOMAD_IP_http.
      port "http" {}
    }

    # Rolling update: one allocation at a time, which must run for a second before it counts as
    # healthy. The default is ten seconds.
    update {
      max_parallel     = 1
      min_healthy_time = "1s"
      healthy_deadline = "30s"
    }

    task "http" {
      # raw_exec starts a program of the machine's, without a container around it.
      driver = "raw_exec"

      config {
        command = "/bin/sh"

        # Whatever the machine has: python3, or else the perl that every Debian comes with.
        # "exec" replaces the shell by the server, so that the server itself gets the signal when
        # the job is stopped. Names such as NOMAD_PORT_http are filled in on the machine.
        args = ["-c", <<-EOT
          cd "${NOMAD_TASK_DIR}" || exit 1
          echo "Hello from allocation ${NOMAD_ALLOC_INDEX} of job ${NOMAD_JOB_NAME}" > index.html
          echo "listening on ${NOMAD_ADDR_http}"
          if command -v python3 > /dev/null; then
            exec python3 -u -m http.server --bind "${NOMAD_IP_http}" "${NOMAD_PORT_http}"
          fi
          exec perl -MIO::Socket::INET -e '
            $| = 1;
            $SIG{PIPE} = "IGNORE";
            my $server = IO::Socket::INET->new(
              LocalAddr => $ENV{NOMAD_IP_http}, LocalPort => $ENV{NOMAD_PORT_http},
              Listen => 16, ReuseAddr => 1,
            ) or die "cannot listen: $!";
            open(my $file, "<", "index.html") or die "cannot read index.html: $!";
            my $page = join("", <$file>);
            while (my $client = $server->accept) {
              my $request = <$client>;
              print "request: $request" if defined $request;
              print $client "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n",
                "Content-Length: ", length($page), "\r\n\r\n", $page;
              close($client);
            }'
        EOT
        ]
      }

      # What the task may use, cpu in MHz and memory in MB. The scheduler fills machines with it.
      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}

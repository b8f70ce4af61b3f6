job "web" {
  group "server" {
    network {
      port "a" {
        static = 80
      }

      port "b" {
        static = 80
      }

      port "c" {
        to = 70000
      }
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}

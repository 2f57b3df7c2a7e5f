"""What is installed besides the program: manual, completion, unit, packages, manifests. Each is read by the program that
it is made for."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import support
from serve_support import serving

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(support.PROGRAM).resolve().parent
PAGES = BUILD / "pages"
PACKAGING = ROOT / "packaging"


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")


def commands():
    overview = support.run("help", exit=0).out
    return re.findall(r"^  ([a-z]+)  ", overview, re.MULTILINE)


def flags(command):
    return re.findall(r"^  (--?[a-z][a-z-]*)", support.run("help", command, exit=0).out.split("\nOptions\n")[-1], re.MULTILINE)


def complete(*words):
    """What bash offers for the last of these words."""
    script = f"source {PAGES}/streamvec.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _streamvec; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", "streamvec", *words], capture_output=True, text=True, check=True,
                          cwd=ROOT / "packaging")
    assert done.stderr == ""
    return done.stdout.split()


class TestCompletion:
    def test_bash_takes_it_and_ties_it_to_the_program(self):
        subprocess.run(["bash", "-n", PAGES / "streamvec.bash"], check=True)
        tied = subprocess.run(["bash", "--norc", "-c", f"source {PAGES}/streamvec.bash; complete -p streamvec"],
                              capture_output=True, text=True, check=True).stdout
        assert tied == "complete -F _streamvec streamvec\n"

    def test_commands_are_offered(self):
        assert set(commands()) <= set(complete(""))
        assert complete("ne") == ["nearest"]
        assert "train" in complete("help", "tr")

    def test_every_flag_of_a_command_is_offered_and_no_other(self):
        for command in commands():
            if command != "help":
                assert set(complete(command, "-")) - {"--help"} == set(flags(command)), command

    def test_words_that_an_option_may_be_are_offered(self):
        assert complete("train", "--model", "su") == ["subword"]
        assert complete("train", "--model", "=", "su") == ["subword"]
        assert "hybrid" in complete("train", "--model", "=")
        assert complete("train", "--dim", "") == []

    def test_elsewhere_files_are_offered(self):
        assert complete("train", "graf") == ["grafana.json"]
        assert complete("train", "--config", "graf") == ["grafana.json"]

    def test_what_launch_starts_is_completed_like_itself(self):
        assert complete("launch", "-n", "2", "--", "") == ["train"]
        assert complete("launch", "-n", "2", "--", "train", "--sync", "ss") == ["ssp"]
        assert "--dim" in complete("launch", "-n", "2", "--", "train", "--d")


class TestManual:
    def read(self, *options):
        environment = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}
        return subprocess.run(["man", "--warnings=w", *options, "-l", PAGES / "streamvec.1"], capture_output=True, text=True,
                              env=environment)

    def test_man_has_nothing_to_complain_of(self):
        needs("man")
        done = self.read()
        assert (done.returncode, done.stderr) == (0, "")

    def test_it_names_every_command_and_every_option(self):
        needs("man")
        shown = self.read().stdout
        for command in commands():
            assert f"streamvec {command}" in shown
            for flag in flags(command):
                assert re.search(rf"^ +{re.escape(flag)}\b", shown, re.MULTILINE), flag
        assert "--dim N" in shown and "(default: 200)" in shown
        assert re.search(r"^NAME\s+streamvec - word vectors", shown, re.MULTILINE)

    def test_examples_stand_as_they_are_typed(self):
        needs("man")
        assert "streamvec nearest model king queen -k 5" in self.read().stdout


class TestService:
    def unit(self, tmp_path, change=lambda text: text):
        """The unit as systemd would find it, with the built program in place of the installed one."""
        text = change((PACKAGING / "streamvec@.service").read_text().replace("/usr/bin/streamvec", support.PROGRAM))
        path = tmp_path / "streamvec@news.service"
        path.write_text(text)
        return subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)

    def test_systemd_has_nothing_to_complain_of(self, tmp_path):
        needs("systemd-analyze")
        done = self.unit(tmp_path)
        ours = [line for line in done.stderr.splitlines() if "streamvec" in line]
        assert (done.returncode, ours) == (0, []), done.stderr

    def test_a_mistake_in_it_would_be_seen(self, tmp_path):
        needs("systemd-analyze")
        wrong = self.unit(tmp_path, lambda text: text.replace("StateDirectory", "StateDirectoy"))
        assert "StateDirectoy" in wrong.stderr

    def test_its_command_runs(self, tmp_path, text):
        line = re.search(r"^ExecStart=(.*)$", (PACKAGING / "streamvec@.service").read_text(), re.MULTILINE)[1]
        values = dict(re.findall(r"^(\w+)=(.*)$", (PACKAGING / "example.conf").read_text(), re.MULTILINE))
        assert values["SOURCES"].startswith("https://")
        line = line.replace("$SOURCES", str(text)).replace("$OPTIONS", values["OPTIONS"] + " --no-drift --threads 1 --dim 8")
        line = line.replace("%S/streamvec/%i", str(tmp_path / "m")).replace("/usr/bin/streamvec", support.PROGRAM)
        subprocess.run(line.split(), check=True, capture_output=True, timeout=support.TIMEOUT_S)
        assert support.newest(tmp_path / "m").exists()


@support.needs("gRPC")
class TestCluster:
    @pytest.fixture(scope="class")
    def objects(self):
        yaml = pytest.importorskip("yaml")
        return [each for each in yaml.safe_load_all((PACKAGING / "kubernetes.yaml").read_text()) if each]

    def of_kind(self, objects, kind):
        return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}

    def test_every_object_says_what_it_is(self, objects):
        versions = {"Secret": "v1", "Service": "v1", "PersistentVolumeClaim": "v1", "Job": "batch/v1", "Deployment": "apps/v1"}
        for each in objects:
            assert versions[each["kind"]] == each["apiVersion"] and each["metadata"]["name"]

    def test_what_is_referred_to_is_there(self, objects):
        claims, secrets = self.of_kind(objects, "PersistentVolumeClaim"), self.of_kind(objects, "Secret")
        for each in [*self.of_kind(objects, "Job").values(), *self.of_kind(objects, "Deployment").values()]:
            pod = each["spec"]["template"]["spec"]
            names = {volume["name"] for volume in pod["volumes"]}
            for volume in pod["volumes"]:
                if "secret" in volume:
                    wanted = {item["key"] for item in volume["secret"]["items"]}
                    assert wanted <= set(secrets[volume["secret"]["secretName"]]["stringData"])
                else:
                    assert volume["persistentVolumeClaim"]["claimName"] in claims
            for container in pod["containers"]:
                assert {mount["name"] for mount in container["volumeMounts"]} == names
                for variable in container.get("env", []):
                    key = variable["valueFrom"].get("secretKeyRef")
                    assert key is None or key["key"] in secrets[key["name"]]["stringData"]

    def test_services_find_their_pods(self, objects):
        labels = [each["spec"]["template"]["metadata"]["labels"] for each in objects if "template" in each.get("spec", {})]
        for service in self.of_kind(objects, "Service").values():
            assert sum(service["spec"]["selector"].items() <= label.items() for label in labels) == 1
        for each in self.of_kind(objects, "Deployment").values():
            assert each["spec"]["selector"]["matchLabels"].items() <= each["spec"]["template"]["metadata"]["labels"].items()

    def test_nodes_are_as_many_as_pods_and_have_their_names(self, objects):
        job = self.of_kind(objects, "Job")["streamvec"]
        pod = job["spec"]["template"]["spec"]
        arguments = pod["containers"][0]["args"]
        nodes = next(a for a in arguments if a.startswith("--nodes="))[len("--nodes="):].split(",")
        assert len(nodes) == job["spec"]["completions"] == job["spec"]["parallelism"]
        assert nodes == [f"streamvec-{i}.{pod['subdomain']}:7000" for i in range(len(nodes))]
        assert pod["subdomain"] in self.of_kind(objects, "Service") and job["spec"]["completionMode"] == "Indexed"

    def test_the_program_takes_every_flag(self, objects):
        known = commands()
        for each in objects:
            for container in each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
                command = container["args"][0]
                if command == "serve" and command not in known:
                    continue
                taken = flags(command)
                for argument in container["args"][1:]:
                    assert not argument.startswith("--") or argument.split("=")[0] in taken, argument

    def test_its_commands_train_together_and_serve_the_model(self, objects, tmp_path):
        """As the pods would run them, with addresses and folders of this machine."""
        (tmp_path / "text").mkdir()
        (tmp_path / "text/a.txt").write_text(support.topical_text(20_000))
        tokens = tmp_path / "tokens"
        tokens.write_text("a-token-of-24-characters query\n")
        job = self.of_kind(objects, "Job")["streamvec"]["spec"]
        places = {"/text": tmp_path / "text", "/model": tmp_path / "model", "/secrets/tokens": tokens,
                  **{f"streamvec-{i}.streamvec-nodes:7000": f"127.0.0.1:{port}"
                     for i, port in enumerate(support.free_ports(job["completions"]))}}

        def here(container, **variables):
            def local(argument):
                for name, value in {**places, **{f"$({key})": value for key, value in variables.items()}}.items():
                    argument = argument.replace(name, str(value))
                return argument
            return [local(argument) for argument in container["args"]]
        (train,) = job["template"]["spec"]["containers"]
        environment = {**os.environ, "STREAMVEC_CLUSTER_TOKEN": "of the cluster"}
        nodes = [subprocess.Popen([support.PROGRAM, *here(train, JOB_COMPLETION_INDEX=rank), "--dim=8", "--threads=1"], env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(job["completions"])]
        said = [node.communicate(timeout=4 * support.TIMEOUT_S)[0] for node in nodes]
        assert [node.returncode for node in nodes] == [0] * len(nodes), said
        (serve,) = self.of_kind(objects, "Deployment")["streamvec-serve"]["spec"]["template"]["spec"]["containers"]
        arguments = [argument.replace("0.0.0.0:8080", "127.0.0.1:0") for argument in here(serve)]
        assert "--listen=127.0.0.1:0" in arguments
        with serving(*arguments[1:], "--listen", "127.0.0.1:0") as running:
            asked = {"Authorization": "Bearer a-token-of-24-characters", "Host": "streamvec"}
            assert running.ask("GET", "/api/nearest?word=aaax", headers=asked)[0] == 200
            assert running.ask("GET", "/api/nearest?word=aaax", headers={"Host": "streamvec"})[0] == 401

    def test_the_image_is_of_this_version(self, objects):
        version = support.run("version", exit=0).out.split()[1]
        text = (PACKAGING / "kubernetes.yaml").read_text()
        assert set(re.findall(r"image: streamvec:(\S+)", text)) == {version}


class TestImage:
    def test_every_file_that_it_copies_is_there_and_every_target_exists(self):
        text = (PACKAGING / "Dockerfile").read_text().replace("\\\n", " ")
        for line in re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE):
            assert (ROOT / line).exists(), line
        stages = set(re.findall(r"^FROM \S+ AS (\w+)", text, re.MULTILINE))
        assert set(re.findall(r"--from=(\w+)", text)) == stages
        ninja = (BUILD / "build.ninja").read_text()
        for target in re.search(r"--target ([\w ]+?) &&", text)[1].split():
            assert re.search(rf"^build {target}(:| )", ninja, re.MULTILINE), target
        assert not [line for line in text.splitlines() if line and not re.match(
            r"#|(FROM|WORKDIR|COPY|RUN|USER|VOLUME|STOPSIGNAL|ENTRYPOINT|CMD) ", line)]


class TestDashboard:
    def test_it_is_a_dashboard_of_figures_that_the_program_has(self):
        board = json.loads((PACKAGING / "grafana.json").read_text())
        assert board["uid"] and board["title"] and board["schemaVersion"] >= 36
        asked = set()
        for panel in board["panels"]:
            assert panel["type"] in ("timeseries", "stat") and panel["title"] and panel["targets"]
            assert set(panel["gridPos"]) == {"x", "y", "w", "h"} and panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
            for target in panel["targets"]:
                assert target["expr"].count("(") == target["expr"].count(")") and target["refId"]
                names = re.findall(r"\b((?:streamvec|process)_\w+)\{", target["expr"])
                assert names, target["expr"]
                asked.update(names)
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        source = ROOT / "streamvec/serve/metrics_text.cc"
        if source.exists():
            assert asked <= set(re.findall(r'"((?:streamvec|process)_\w+)["{]', source.read_text()))

    def test_no_panel_lies_on_another(self):
        taken = set()
        for panel in json.loads((PACKAGING / "grafana.json").read_text())["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells


class TestInstall:
    @pytest.fixture(scope="class")
    def prefix(self, tmp_path_factory):
        prefix = tmp_path_factory.mktemp("prefix")
        for component in ["runtime", "dev", "python"]:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix, "--component", component], check=True, capture_output=True)
        return prefix

    def test_the_program_and_its_pages_are_installed(self, prefix):
        done = subprocess.run([prefix / "bin/streamvec", "version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("streamvec ")
        for path in ["share/man/man1/streamvec.1", "share/bash-completion/completions/streamvec", "lib/systemd/system/streamvec@.service",
                     "share/streamvec/grafana.json", "share/doc/streamvec/copyright"]:
            assert (prefix / path).is_file(), path

    def test_no_header_of_tests_is_installed(self, prefix):
        headers = [str(path.relative_to(prefix)) for path in prefix.rglob("*.h")]
        assert "include/streamvec/streamvec.h" in headers and not [header for header in headers if "test" in header]

    @pytest.mark.skipif(support.SANITIZED, reason="the other program is built without sanitizers")
    def test_another_program_finds_builds_and_runs(self, prefix, tmp_path):
        (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(consumer CXX)\n"
                                                 "find_package(streamvec 0.1 REQUIRED)\n"
                                                 "find_package(streamvec 0.1 REQUIRED)  # as two parts of a project may\n"
                                                 "add_executable(consumer main.cc)\n"
                                                 "target_link_libraries(consumer PRIVATE streamvec::streamvec)\n")
        (tmp_path / "main.cc").write_text("""#include <streamvec/streamvec.h>
#include <iostream>
int main(int, char** argv) {
  streamvec::TrainOptions options;
  options.dim = 8;
  options.threads = 1;
  const auto trained = streamvec::train(options, {argv[1]}, argv[2], streamvec::TrainHooks());
  if (!trained.ok()) return 1;
  const auto vectors = streamvec::WordVectors::load(argv[2]);
  if (!vectors.ok()) return 1;
  const auto near = vectors->most_similar({std::string(vectors->word(0))}, {}, 3);
  std::cout << vectors->size() << " " << near->size() << "\\n";
}
""")
        text = tmp_path / "text.txt"
        text.write_text(support.topical_text(3_000))
        done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                               f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        done = subprocess.run(["cmake", "--build", tmp_path / "build"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        done = subprocess.run([tmp_path / "build/consumer", text, tmp_path / "model"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        words, near = done.stdout.split()
        assert int(words) == len(support.vocabulary(tmp_path / "model")) and near == "3"


class TestDeb:
    def test_the_package_holds_a_program_that_runs(self, tmp_path):
        needs("dpkg-deb")
        subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-D", "CPACK_COMPONENTS_ALL=runtime", "-B", tmp_path],
                       check=True, capture_output=True, cwd=BUILD)
        (deb,) = tmp_path.glob("streamvec_*.deb")
        field = lambda name: subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout.strip()
        assert field("Package") == "streamvec" and field("Version") in support.run("version", exit=0).out
        assert "libc6" in field("Depends") and "libcurl4" in field("Depends")
        subprocess.run(["dpkg-deb", "-x", deb, tmp_path / "root"], check=True)
        done = subprocess.run([tmp_path / "root/usr/bin/streamvec", "version"], capture_output=True, text=True, check=True)
        assert done.stdout == support.run("version", exit=0).out
        listed = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
        for path in ["./usr/bin/streamvec", "./usr/share/man/man1/streamvec.1", "./usr/lib/systemd/system/streamvec@.service",
                     "./usr/share/bash-completion/completions/streamvec"]:
            assert re.search(rf" {re.escape(path)}$", listed, re.MULTILINE), listed
        assert not re.search(r" \./(?!usr/)\S", listed), "nothing outside /usr"
